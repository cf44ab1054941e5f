#include "jacobi_limits.h"

#include "fail_together.h"
#include "hardware.h"
#include "jacobi_case.h"
#include "jacobi_sweep.h"
#include "program.h"
#include "timer.h"

#include <mpi.h>
#include <stdlib.h>

/* Planes of the grids that lie in private caches; sweeps of them: many, but no longer than a solution. */
enum { PLANES = 4, MOST_SWEEPS = 200 };

double private_cache_bytes(void) {
    return cache_bytes(2) ? (double)cache_bytes(2) : 1 << 18;
}

double limits_bandwidth(const struct grid *grid, int threads, bool streaming) {
    struct box inside = grid_inside(grid);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
    for (long sweep = 0; sweep < problem.sweeps; sweep++) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int thread = 0; thread < threads; thread++) {
            struct box share = grid_share(&inside, threads, thread);
            sweep_copy(grid, (int)(sweep % 2), &share, streaming);
        }
    }
    double bytes = case_points(&grid->plan) * (double)problem.sweeps * sweep_bytes(streaming);
    return bytes / case_seconds(begin);
}

/* A periodic grid of one part in half a private cache. */
static struct grid_plan small_plan(const struct grid *grid) {
    struct grid_plan plan = {.periodic = true, .parts = {1, 1, 1}, .depth = 1, .wrap = {true, true, true}};
    long rows = (long)(private_cache_bytes() / 2.0 / (2.0 * sizeof(double) * (double)(grid->pitch * PLANES)));
    plan.points[X] = grid->size[X];
    plan.points[Y] = rows < 4 ? 4 : rows;
    plan.points[Z] = PLANES;
    return plan;
}

double limits_cache_rate(const struct grid *grid, int threads) {
    struct grid_plan plan = small_plan(grid);
    struct grid **own = allocate((size_t)threads, sizeof(struct grid *));
    for (int thread = 0; thread < threads; thread++) {
        own[thread] = grid_make(&plan, 0);
        grid_start(own[thread], 1);
    }
    const struct sweep sweep = {.streaming = false, .block = plan.points[Y]};
    struct box inside = grid_inside(own[0]);
    double solution = case_points(&grid->plan) * (double)problem.sweeps / (double)box_points(&inside);
    int sweeps = solution < 1.0 ? 1 : solution > MOST_SWEEPS ? MOST_SWEEPS : (int)solution;
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; thread++)
        for (int count = 0; count < sweeps; count++)
            sweep_box(own[thread], count % 2, &inside, &sweep);
    double seconds = case_seconds(begin), updates = (double)threads * sweeps * (double)box_points(&inside);
    for (int thread = 0; thread < threads; thread++)
        grid_free(own[thread]);
    free(own);
    return ranks_sum(updates) / seconds;
}
