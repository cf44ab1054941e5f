/* Preloaded, it makes a program believe that it may run on every other CPU of a host with 2000 of them. As
 * the kernel does, it refuses a set without room for all. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>

enum { CPUS = 2000 };

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    (void)process;
    if (8 * size < CPUS) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(size, set);
    for (size_t cpu = 0; cpu < CPUS; cpu += 2)
        CPU_SET_S(cpu, size, set);
    return 0;
}
