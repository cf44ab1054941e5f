/* One rank's part of the grid: two arrays of values with layers of halo, and how rows are reached. */
#ifndef PLUMB_JACOBI_GRID_H
#define PLUMB_JACOBI_GRID_H

#include "jacobi_field.h"
#include "jacobi_split.h"

#include <stddef.h>

/* The description of a grid. */
struct grid_plan {
    long points[DIMENSIONS]; /* of the whole grid */
    int parts[DIMENSIONS];
    bool periodic;
    long depth;            /* layers of halo */
    bool wrap[DIMENSIONS]; /* a periodic dimension in one part may be closed without a halo (x, y, z) */
};

struct grid {
    struct grid_plan plan;
    int place[DIMENSIONS];
    struct box own;                   /* this rank's points, by global index */
    long size[DIMENSIONS];            /* own points */
    bool wrap[DIMENSIONS];            /* closed in itself: neighbours are found at the other end */
    int neighbour[DIMENSIONS][SIDES]; /* ranks; -1 at a fixed boundary */
    long pitch, plane;                /* doubles from row to row and from plane to plane */
    double *values[2];                /* point (0,0,0) of both arrays */
    void *memory;
    size_t bytes;
    struct field field;
};

/* Bytes that the two arrays of one rank take. */
size_t grid_bytes(const struct grid_plan *plan, int rank);

/* Allocate one rank's part of the grid; its pages are not touched yet. Free with grid_free. */
struct grid *grid_make(const struct grid_plan *plan, int rank);
void grid_free(struct grid *grid);

/* Write the start values into array 0, and the fixed boundary into both, by the threads that will work on
 * them. Everything else of the halo and of array 1 is set to not-a-number: reading it unexchanged shows. */
void grid_start(struct grid *grid, int threads);

/* The share of thread `thread` of `threads` of a box: cut across z, or across y where there are few planes.
 */
struct box grid_share(const struct box *box, int threads, int thread);

/* The box of all own points, counted from 0, and that box with every halo. */
struct box grid_inside(const struct grid *grid);
struct box grid_outside(const struct grid *grid);

/* Row (y, z) of one of the arrays, at x = 0. */
static inline double *grid_row(const struct grid *grid, double *values, long y, long z) {
    if (grid->wrap[Y])
        y = y < 0 ? y + grid->size[Y] : y >= grid->size[Y] ? y - grid->size[Y] : y;
    if (grid->wrap[Z])
        z = z < 0 ? z + grid->size[Z] : z >= grid->size[Z] ? z - grid->size[Z] : z;
    return values + z * grid->plane + y * grid->pitch;
}

/* Collective: residual, error and checksum of array `which` after `sweeps` sweeps. Its halo must be valid. */
struct findings grid_findings(const struct grid *grid, int which, long sweeps, int threads);

#endif
