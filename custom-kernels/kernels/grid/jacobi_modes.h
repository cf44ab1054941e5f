/* The ways to combine communication and computation in one sweep. */
#ifndef PLUMB_JACOBI_MODES_H
#define PLUMB_JACOBI_MODES_H

#include "jacobi_halo.h"
#include "jacobi_sweep.h"

enum mode { PURE, VECTOR, TASK_SPLIT, TASK_TASKS, TASK_DYNAMIC, TASK_NESTED, MODES };

extern const char *const mode_names[]; /* ended by NULL */

enum { MOST_SHELLS = DIMENSIONS * SIDES };

/* The points of a part, by what they wait for. */
struct regions {
    struct box whole;
    struct box inner;               /* needs no halo */
    struct box shells[MOST_SHELLS]; /* the rest */
    int shell_count;
    struct box *blocks; /* the inner box, cut up */
    int block_count;
};

/* Divide this rank's points. A shell is one point thick, in x one cache line, because streaming stores write
 * whole lines. Blocks: several for each of `threads`. Free with regions_free. */
struct regions regions_make(const struct grid *grid, const struct sweep *sweep, int threads);
void regions_free(struct regions *regions);

/* One sweep out of array `from`, halo exchange included. */
void mode_sweep(enum mode mode, struct halo *halo, int from, const struct regions *regions,
                const struct sweep *sweep, int threads);

#endif
