/* Which threads are near each other: those whose CPUs share the last cache. */
#ifndef PLUMB_BARRIER_NEAR_H
#define PLUMB_BARRIER_NEAR_H

/* For each of `threads` OpenMP threads the first CPU that shares the outermost cache with the CPU that it
 * runs on now (0 where the host does not report its caches). Returns the number of different CPUs that they
 * may run on. */
int near_groups(int threads, int *group);

#endif
