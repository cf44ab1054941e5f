/* What the host reports about its caches and CPUs: for default sizes, never for placement. */
#ifndef PLUMB_KERNEL_HARDWARE_H
#define PLUMB_KERNEL_HARDWARE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes of the data cache of CPU 0 at `level` (1 to 4); 0 if there is none or the host does not report it. */
size_t cache_bytes(int level);

/* Bytes of one last-level cache, and of all of the host together; 32 MiB where the host does not report
 * them. */
size_t last_cache_bytes(void);
size_t all_last_caches_bytes(void);

/* A set of CPUs for the macros CPU_..._S: a cpu_set_t holds 1024, and the kernel refuses it where there may
 * be more. */
enum { MOST_CPUS = 8192 };
struct cpus {
    cpu_set_t set[MOST_CPUS / CPU_SETSIZE];
};

/* The CPUs that the calling thread may run on; false, and none, if the kernel does not say. */
bool cpus_allowed(struct cpus *cpus);

/* The CPUs that any of the `threads` of the rank may run on: each may be bound to a place of its own. */
bool cpus_of_threads(int threads, struct cpus *cpus);

int cpus_count(const struct cpus *cpus);
bool cpus_have(const struct cpus *cpus, int cpu);

/* Bind the calling thread to one CPU; false with errno if the kernel refuses. */
bool cpu_bind(int cpu);

/* The same CPUs as text such as "0-3,8". Free it. */
char *affinity_text(void);

#endif
