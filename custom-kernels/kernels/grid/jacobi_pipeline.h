/* Temporal blocking: a team of threads that share a cache takes a grid through several sweeps at once.
 *
 * The threads are the stages of a pipeline. Each does some of the sweeps ("levels") on one tile after the
 * other; each level works one point lower in y and z than the one before, so that what it reads is done.
 * One tile across all rows gives the wavefront of Wellein et al. 2009, smaller tiles the pipelined blocking
 * of Wittmann et al. 2010. */
#ifndef PLUMB_JACOBI_PIPELINE_H
#define PLUMB_JACOBI_PIPELINE_H

#include "jacobi_grid.h"

#include <stdatomic.h>

enum { MOST_LEVELS = 64, CACHE_LINE = 64 };

/* How stages wait for each other. */
struct looseness {
    bool barrier;      /* all stages take a step together */
    long lower, upper; /* else: tiles that a stage stays behind the one before it, at least and at most */
};

/* Tiles that one stage has done, alone on its cache line. */
struct counter {
    _Alignas(CACHE_LINE) atomic_long done;
};

struct pipeline {
    const struct grid *grid;
    int threads;
    long tile[DIMENSIONS]; /* rows in y and planes in z; x is never cut */
    bool columns;          /* each thread does all levels of its columns, behind the column before */
    struct looseness looseness;
    struct counter *counters;
};

/* The tiles of one pass: levels 1 to `levels`. */
struct pass {
    int levels;
    struct box valid[MOST_LEVELS + 1]; /* by level: what it can compute from the halo that is left */
    long tiles_y, tiles_z;
};

struct pass pass_make(const struct pipeline *pipeline, int levels);

/* What `level` computes in tile `tile`; may be empty. */
struct box pass_box(const struct pipeline *pipeline, const struct pass *pass, int level, long tile);

/* Advance by `levels` sweeps out of array `from`, whose halo must be valid `levels` deep; the result is in
 * array (from + levels) % 2. */
void pipeline_pass(struct pipeline *pipeline, int from, int levels);

/* Set the tile, in rows (y) and planes (z). `columns`: the threads share out columns of tiles, not levels. */
void pipeline_shape(struct pipeline *pipeline, long rows, long planes, bool columns);

/* Rows such that the planes which a thread works on at a time take half of its private cache; or, where that
 * is too narrow for what levels lose at the edges, its part of half the shared one. */
long pipeline_fitting_rows(const struct pipeline *pipeline, int levels, bool columns);

/* Distances, for the present tile, at which what is handed on lies in the shared cache: beyond one and a half
 * private caches, and all stages together within half of the shared one. */
struct looseness pipeline_cached_distances(const struct pipeline *pipeline);

struct pipeline *pipeline_make(const struct grid *grid, int threads);
void pipeline_free(struct pipeline *pipeline);

#endif
