/* What limits a sweep, measured in the same run by the same threads: memory, and the cores on cached data. */
#ifndef PLUMB_JACOBI_LIMITS_H
#define PLUMB_JACOBI_LIMITS_H

#include "jacobi_grid.h"

/* Bytes of a cache that a core does not share. */
double private_cache_bytes(void);

/* Collective: bytes a second of copies of the grid by all ranks, `threads` each, as many as a solution has
 * sweeps and with the stores of a sweep: counted are `sweep_bytes` for each point. Array 1 is overwritten. */
double limits_bandwidth(const struct grid *grid, int threads, bool streaming);

/* Collective: updates a second of all ranks, `threads` each, when every thread sweeps a closed grid of its
 * own in half of its private cache, with rows as long as those of `grid`. */
double limits_cache_rate(const struct grid *grid, int threads);

#endif
