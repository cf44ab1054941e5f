/* Sweeps over boxes of a grid, and the plain copy with whose speed a sweep is compared. */
#ifndef PLUMB_JACOBI_SWEEP_H
#define PLUMB_JACOBI_SWEEP_H

#include "jacobi_grid.h"

/* How a sweep goes over memory. */
struct sweep {
    bool streaming; /* results are stored past the caches */
    long block;     /* rows in y that are swept through all planes before the next: the layer condition */
    long ahead;     /* doubles by which the row that comes from memory is prefetched; 0: not at all */
};

/* A sweep from memory to memory by one of `threads` that share the last cache; its block keeps the layer
 * condition. */
struct sweep sweep_plain(const struct grid *grid, int threads, bool streaming);

/* How far a sweep from memory prefetches, in doubles. */
long sweep_ahead(const struct grid *grid);

/* Compute the points of `box` in array 1 - from out of array `from`. Called by any thread; ends with a store
 * fence. */
void sweep_box(const struct grid *grid, int from, const struct box *box, const struct sweep *sweep);

/* Copy the rows of `box`, over their whole length, from array `from` to the other one: one load and one store
 * stream, like a sweep without its neighbours. */
void sweep_copy(const struct grid *grid, int from, const struct box *box, bool streaming);

/* Bytes that a sweep moves for each update if a layer is loaded once: 16, or 24 where a regular store has its
 * line brought into the cache first. */
double sweep_bytes(bool streaming);

#endif
