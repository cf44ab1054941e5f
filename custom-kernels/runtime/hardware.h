/* What the host reports about its caches and CPUs: for default sizes, never for placement. */
#ifndef PLUMB_KERNEL_HARDWARE_H
#define PLUMB_KERNEL_HARDWARE_H

#include <stddef.h>

/* Bytes of the data cache of CPU 0 at `level` (1 to 4); 0 if there is none or the host does not report it. */
size_t cache_bytes(int level);

/* Bytes of one last-level cache, and of all of the host together; 32 MiB where the host does not report
 * them. */
size_t last_cache_bytes(void);
size_t all_last_caches_bytes(void);

/* CPUs that the calling thread may run on, as text such as "0-3,8", which is cut if `room` bytes are too few.
 * Returns how many they are. */
int affinity_text(char *text, size_t room);

#endif
