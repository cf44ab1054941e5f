#include "jacobi_pipeline.h"

#include "fail_together.h"
#include "hardware.h"
#include "jacobi_limits.h"
#include "jacobi_sweep.h"

#include <limits.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>

/* Rows of a tile for each level of a stage: at the edge of a column of tiles each level works on a row that
 * the column before had in its cache. */
enum { LEAST_ROWS = 6 };

/* Looks at a counter before a thread yields its CPU: there may be more threads than cores. */
enum { PATIENCE = 2000 };

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait until stage `stage` has done `tiles` tiles; what it wrote for them is visible afterwards. */
static void wait_for(struct pipeline *pipeline, int stage, long tiles) {
    long looks = 0;
    while (atomic_load_explicit(&pipeline->counters[stage].done, memory_order_acquire) < tiles) {
        relax();
        if (++looks % PATIENCE == 0)
            sched_yield();
    }
}

static long least(long a, long b) {
    return a < b ? a : b;
}

/* Wait before stage `stage` begins tile `tile` (from 0) of `tiles`. Relaxed: the stage before is at least
 * `lower` tiles ahead, or at its end, and the stage after no more than `upper` behind. Waiting for the stage
 * after is for the cache only; the order of reads and writes needs nothing but lower >= 1. */
static void wait_relaxed(struct pipeline *pipeline, int stage, long tile, long tiles) {
    const struct looseness *loose = &pipeline->looseness;
    if (stage > 0)
        wait_for(pipeline, stage - 1, least(tile + loose->lower, tiles));
    if (stage + 1 < pipeline->threads)
        wait_for(pipeline, stage + 1, tile + 1 - loose->upper);
}

static void tile_done(struct pipeline *pipeline, int stage, long done) {
    atomic_store_explicit(&pipeline->counters[stage].done, done, memory_order_release);
}

/* A halo shrinks by one layer with each level; a fixed boundary and a closed dimension have none. */
static struct box valid_box(const struct grid *grid, long left) {
    struct box box = grid_inside(grid);
    for (int d = 0; d < DIMENSIONS; d++) {
        if (grid->wrap[d])
            continue;
        box.range[d].begin -= grid->neighbour[d][LOW] >= 0 ? left : 0;
        box.range[d].end += grid->neighbour[d][HIGH] >= 0 ? left : 0;
    }
    return box;
}

static long tiles_over(struct range range, int levels, long tile) {
    return (range.end - range.begin + levels - 1 + tile - 1) / tile;
}

struct pass pass_make(const struct pipeline *pipeline, int levels) {
    struct pass pass = {.levels = levels};
    for (int level = 1; level <= levels; level++)
        pass.valid[level] = valid_box(pipeline->grid, levels - level);
    const struct box *widest = &pass.valid[1];
    long rows = widest->range[Y].end - widest->range[Y].begin;
    pass.tiles_y = pipeline->tile[Y] >= rows ? 1 : tiles_over(widest->range[Y], levels, pipeline->tile[Y]);
    pass.tiles_z = tiles_over(widest->range[Z], levels, pipeline->tile[Z]);
    return pass;
}

static struct range cut(struct range valid, long begin, long end) {
    return (struct range){begin > valid.begin ? begin : valid.begin, least(end, valid.end)};
}

struct box pass_box(const struct pipeline *pipeline, const struct pass *pass, int level, long tile) {
    struct box box = pass->valid[level];
    const struct box *widest = &pass->valid[1];
    long in_y = tile / pass->tiles_z, in_z = tile % pass->tiles_z, shift = level - 1;
    if (pass->tiles_y > 1) {
        long y = widest->range[Y].begin + in_y * pipeline->tile[Y] - shift;
        box.range[Y] = cut(box.range[Y], y, y + pipeline->tile[Y]);
    }
    long z = widest->range[Z].begin + in_z * pipeline->tile[Z] - shift;
    box.range[Z] = cut(box.range[Z], z, z + pipeline->tile[Z]);
    return box;
}

/* Only the first level of a stage reads what is not in the private cache. */
static void do_tile(const struct pipeline *pipeline, const struct pass *pass, int from, struct range levels,
                    long tile) {
    for (long level = levels.begin; level < levels.end; level++) {
        struct box box = pass_box(pipeline, pass, (int)level, tile);
        struct sweep sweep = {false, LONG_MAX / 2, level == levels.begin ? sweep_ahead(pipeline->grid) : 0};
        sweep_box(pipeline->grid, (int)((from + level - 1) % 2), &box, &sweep);
    }
}

static void run_relaxed(struct pipeline *pipeline, const struct pass *pass, int from, int stage) {
    struct range levels = split_levels(pass->levels, pipeline->threads, stage);
    long tiles = pass->tiles_y * pass->tiles_z;
    for (long tile = 0; tile < tiles; tile++) {
        wait_relaxed(pipeline, stage, tile, tiles);
        do_tile(pipeline, pass, from, levels, tile);
        tile_done(pipeline, stage, tile + 1);
    }
}

/* Stage s does tile t in step s + t; after each step all wait for all. */
static void run_in_step(struct pipeline *pipeline, const struct pass *pass, int from, int stage) {
    struct range levels = split_levels(pass->levels, pipeline->threads, stage);
    long tiles = pass->tiles_y * pass->tiles_z;
    for (long step = 0; step < tiles + pipeline->threads - 1; step++) {
        long tile = step - stage;
        if (tile >= 0 && tile < tiles)
            do_tile(pipeline, pass, from, levels, tile);
        tile_done(pipeline, stage, step + 1);
        for (int other = 0; other < pipeline->threads; other++)
            wait_for(pipeline, other, step + 1);
    }
}

/* Thread t has columns t, t + threads, ... and goes down each, all levels of a tile at once, at least `lower`
 * tiles behind the thread in the column before. */
static void run_columns(struct pipeline *pipeline, const struct pass *pass, int from, int thread) {
    const struct range all = {1, pass->levels + 1};
    long high = pass->tiles_z;
    int threads = pipeline->threads;
    for (long column = thread; column < pass->tiles_y; column += threads)
        for (long k = 0; k < high; k++) {
            long before = column - 1;
            if (column > 0 && threads > 1)
                wait_for(pipeline, (int)(before % threads),
                         before / threads * high + least(k + pipeline->looseness.lower, high));
            do_tile(pipeline, pass, from, all, column * high + k);
            tile_done(pipeline, thread, column / threads * high + k + 1);
        }
}

void pipeline_pass(struct pipeline *pipeline, int from, int levels) {
    struct pass pass = pass_make(pipeline, levels);
    for (int stage = 0; stage < pipeline->threads; stage++)
        tile_done(pipeline, stage, 0);
#pragma omp parallel num_threads(pipeline->threads)
    {
        if (pipeline->columns)
            run_columns(pipeline, &pass, from, omp_get_thread_num());
        else if (pipeline->looseness.barrier)
            run_in_step(pipeline, &pass, from, omp_get_thread_num());
        else
            run_relaxed(pipeline, &pass, from, omp_get_thread_num());
    }
}

void pipeline_shape(struct pipeline *pipeline, long rows, long planes, bool columns) {
    pipeline->tile[X] = pipeline->grid->size[X];
    pipeline->tile[Y] = rows;
    pipeline->tile[Z] = planes;
    pipeline->columns = columns;
}

long pipeline_fitting_rows(const struct pipeline *pipeline, int levels, bool columns) {
    int sharing = columns ? 1 : pipeline->threads;
    long each = (levels + sharing - 1) / sharing;
    double bytes = 2.0 * sizeof(double) * (double)pipeline->grid->pitch * (double)(each + 2);
    long rows = (long)(private_cache_bytes() / 2.0 / bytes) - each;
    long most = (long)((double)last_cache_bytes() / 2.0 / pipeline->threads / bytes) - each;
    if (rows < LEAST_ROWS * each)
        rows = least(LEAST_ROWS * each, most);
    if (columns) /* at least two for each thread */
        rows = least(rows, (pipeline->grid->size[Y] + levels) / (2 * pipeline->threads));
    return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

struct looseness pipeline_cached_distances(const struct pipeline *pipeline) {
    const long *tile = pipeline->tile;
    double bytes = 2.0 * sizeof(double) * (double)(pipeline->grid->pitch * tile[Y] * tile[Z]);
    int steps = pipeline->threads > 1 ? pipeline->threads - 1 : 1;
    long lower = (long)(1.5 * private_cache_bytes() / bytes) + 1;
    long upper = (long)(0.5 * (double)last_cache_bytes() / bytes / steps);
    return (struct looseness){false, lower, upper > lower ? upper : lower};
}

struct pipeline *pipeline_make(const struct grid *grid, int threads) {
    struct pipeline *pipeline = allocate(1, sizeof *pipeline);
    *pipeline = (struct pipeline){.grid = grid, .threads = threads};
    pipeline->counters = allocate_apart((size_t)threads, sizeof *pipeline->counters);
    return pipeline;
}

void pipeline_free(struct pipeline *pipeline) {
    free(pipeline->counters);
    free(pipeline);
}
