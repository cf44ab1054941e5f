#include "jacobi_modes.h"

#include "fail_together.h"

#include <omp.h>
#include <stdlib.h>

/* Doubles of a cache line; blocks for each thread; planes of a block at least. */
enum { LINE = 8, BLOCKS_EACH = 8, LEAST_PLANES = 4 };

const char *const mode_names[] = {"pure",         "vector",      "task-split", "task-tasks",
                                  "task-dynamic", "task-nested", NULL};

/* The points of dimension `d` that need no halo. */
static struct range inner_range(const struct grid *grid, int d) {
    long size = grid->size[d], thick = d == X ? LINE : 1;
    bool low = !grid->wrap[d] && grid->neighbour[d][LOW] >= 0;
    bool high = !grid->wrap[d] && grid->neighbour[d][HIGH] >= 0;
    struct range range = {low ? thick : 0, high ? (size - 1) / thick * thick : size};
    if (range.begin >= range.end)
        range = (struct range){size, size};
    return range;
}

static void add_shell(struct regions *regions, struct box box, int d, long begin, long end) {
    box.range[d] = (struct range){begin, end};
    if (box_points(&box))
        regions->shells[regions->shell_count++] = box;
}

/* Slabs in z over everything, in y over what is left, in x over what is left then. */
static void peel(struct regions *regions, const struct grid *grid) {
    regions->inner = regions->whole;
    for (int d = Z; d >= X; d--) {
        struct range range = inner_range(grid, d);
        add_shell(regions, regions->inner, d, 0, range.begin);
        add_shell(regions, regions->inner, d, range.end, grid->size[d]);
        regions->inner.range[d] = range;
    }
}

static void cut(struct regions *regions, const struct sweep *sweep, int threads) {
    const struct range y = regions->inner.range[Y], z = regions->inner.range[Z];
    long planes = (z.end - z.begin) / (BLOCKS_EACH * threads);
    planes = planes < LEAST_PLANES ? LEAST_PLANES : planes;
    long most = ((z.end - z.begin) / planes + 1) * ((y.end - y.begin) / sweep->block + 1);
    regions->blocks = allocate((size_t)most, sizeof *regions->blocks);
    for (long j = y.begin; j < y.end; j += sweep->block)
        for (long k = z.begin; k < z.end; k += planes) {
            struct box *block = &regions->blocks[regions->block_count++];
            *block = regions->inner;
            block->range[Y] = (struct range){j, j + sweep->block < y.end ? j + sweep->block : y.end};
            block->range[Z] = (struct range){k, k + planes < z.end ? k + planes : z.end};
        }
}

struct regions regions_make(const struct grid *grid, const struct sweep *sweep, int threads) {
    struct regions regions = {.whole = grid_inside(grid)};
    peel(&regions, grid);
    cut(&regions, sweep, threads);
    return regions;
}

void regions_free(struct regions *regions) {
    free(regions->blocks);
}

/* Halo exchange, then the points that waited for it. */
static void communicate(struct halo *halo, int from, const struct regions *regions,
                        const struct sweep *sweep) {
    halo_exchange(halo, from);
    for (int index = 0; index < regions->shell_count; index++)
        sweep_box(halo->grid, from, &regions->shells[index], sweep);
}

static void vector_sweep(struct halo *halo, int from, const struct regions *regions,
                         const struct sweep *sweep, int threads) {
    halo_exchange(halo, from);
#pragma omp parallel num_threads(threads)
    {
        struct box share = grid_share(&regions->whole, omp_get_num_threads(), omp_get_thread_num());
        sweep_box(halo->grid, from, &share, sweep);
    }
}

/* Thread 0 communicates, the others share the inner points; alone it does both. */
static void split_sweep(struct halo *halo, int from, const struct regions *regions, const struct sweep *sweep,
                        int threads) {
#pragma omp parallel num_threads(threads)
    {
        int workers = omp_get_num_threads() - 1, thread = omp_get_thread_num();
        if (thread == 0)
            communicate(halo, from, regions, sweep);
        if (thread > 0 || workers == 0) {
            struct box share = grid_share(&regions->inner, workers ? workers : 1, workers ? thread - 1 : 0);
            sweep_box(halo->grid, from, &share, sweep);
        }
    }
}

/* Communication is one task beside the blocks; any thread may get it. */
static void tasks_sweep(struct halo *halo, int from, const struct regions *regions, const struct sweep *sweep,
                        int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma omp task
        communicate(halo, from, regions, sweep);
        for (int index = 0; index < regions->block_count; index++) {
#pragma omp task firstprivate(index)
            sweep_box(halo->grid, from, &regions->blocks[index], sweep);
        }
    }
}

/* Thread 0 communicates and then joins the loop over the blocks. */
static void dynamic_sweep(struct halo *halo, int from, const struct regions *regions,
                          const struct sweep *sweep, int threads) {
#pragma omp parallel num_threads(threads)
    {
#pragma omp master
        communicate(halo, from, regions, sweep);
#pragma omp for schedule(dynamic) nowait
        for (int index = 0; index < regions->block_count; index++)
            sweep_box(halo->grid, from, &regions->blocks[index], sweep);
    }
}

/* Two threads: one communicates, the other starts a team of the rest, in which the inner points are shared.
 */
static void nested_sweep(struct halo *halo, int from, const struct regions *regions,
                         const struct sweep *sweep, int threads) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(threads > 1 ? 2 : 1)
    {
        if (omp_get_thread_num() == 0)
            communicate(halo, from, regions, sweep);
        if (omp_get_thread_num() == omp_get_num_threads() - 1) {
#pragma omp parallel num_threads(threads > 1 ? threads - 1 : 1)
            {
                struct box share = grid_share(&regions->inner, omp_get_num_threads(), omp_get_thread_num());
                sweep_box(halo->grid, from, &share, sweep);
            }
        }
    }
}

void mode_sweep(enum mode mode, struct halo *halo, int from, const struct regions *regions,
                const struct sweep *sweep, int threads) {
    switch (mode) {
    case PURE:
    case VECTOR:
        vector_sweep(halo, from, regions, sweep, threads);
        break;
    case TASK_SPLIT:
        split_sweep(halo, from, regions, sweep, threads);
        break;
    case TASK_TASKS:
        tasks_sweep(halo, from, regions, sweep, threads);
        break;
    case TASK_DYNAMIC:
        dynamic_sweep(halo, from, regions, sweep, threads);
        break;
    case TASK_NESTED:
        nested_sweep(halo, from, regions, sweep, threads);
        break;
    case MODES:
        break;
    }
}
