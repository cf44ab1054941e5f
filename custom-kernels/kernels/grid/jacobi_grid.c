#include "jacobi_grid.h"

#include "fail_together.h"
#include "first_touch.h"
#include "hugepages.h"
#include "jacobi_row.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

/* Doubles of a cache line; rows start on one. */
enum { LINE = 8 };

static long whole_lines(long doubles) {
    return (doubles + LINE - 1) / LINE * LINE;
}

static long halo(const struct grid *grid, int d) {
    return grid->wrap[d] ? 0 : grid->plan.depth;
}

/* Odd numbers of lines from row to row and from plane to plane: no rows that fall on the same cache sets. */
static void lay_out(struct grid *grid) {
    grid->pitch = whole_lines(halo(grid, X)) + whole_lines(grid->size[X] + halo(grid, X));
    grid->pitch += grid->pitch / LINE % 2 ? 0 : LINE;
    grid->plane = grid->pitch * (grid->size[Y] + 2 * halo(grid, Y));
    grid->plane += grid->plane / LINE % 2 ? 0 : LINE;
}

static void describe(struct grid *grid, const struct grid_plan *plan, int rank) {
    grid->plan = *plan;
    split_place(plan->parts, rank, grid->place);
    for (int d = 0; d < DIMENSIONS; d++) {
        grid->own.range[d] = split_range(plan->points[d], plan->parts[d], grid->place[d]);
        grid->size[d] = grid->own.range[d].end - grid->own.range[d].begin;
        grid->wrap[d] = plan->wrap[d] && plan->periodic && plan->parts[d] == 1;
        for (int side = LOW; side < SIDES; side++)
            grid->neighbour[d][side] =
                split_neighbour(plan->parts, grid->place, d, (enum side)side, plan->periodic);
    }
    lay_out(grid);
}

static size_t array_doubles(const struct grid *grid) {
    /* One line more, so that the two arrays do not begin on the same cache set. */
    return (size_t)(grid->plane * (grid->size[Z] + 2 * halo(grid, Z)) + LINE);
}

size_t grid_bytes(const struct grid_plan *plan, int rank) {
    struct grid grid;
    describe(&grid, plan, rank);
    return 2 * array_doubles(&grid) * sizeof(double);
}

struct grid *grid_make(const struct grid_plan *plan, int rank) {
    struct grid *grid = allocate(1, sizeof *grid);
    describe(grid, plan, rank);
    grid->bytes = 2 * array_doubles(grid) * sizeof(double);
    grid->memory = memory_take_huge(grid->bytes);
    long corner = halo(grid, Z) * grid->plane + halo(grid, Y) * grid->pitch + whole_lines(halo(grid, X));
    for (int which = 0; which < 2; which++)
        grid->values[which] = (double *)grid->memory + (size_t)which * array_doubles(grid) + corner;
    struct box outside = grid_outside(grid);
    for (int d = 0; d < DIMENSIONS; d++) {
        outside.range[d].begin += grid->own.range[d].begin;
        outside.range[d].end += grid->own.range[d].begin;
    }
    grid->field = field_make(plan->points, plan->periodic, &outside);
    return grid;
}

void grid_free(struct grid *grid) {
    memory_give_back(grid->memory, grid->bytes);
    field_free(&grid->field);
    free(grid);
}

struct box grid_inside(const struct grid *grid) {
    struct box box;
    for (int d = 0; d < DIMENSIONS; d++)
        box.range[d] = (struct range){0, grid->size[d]};
    return box;
}

struct box grid_outside(const struct grid *grid) {
    struct box box;
    for (int d = 0; d < DIMENSIONS; d++)
        box.range[d] = (struct range){-halo(grid, d), grid->size[d] + halo(grid, d)};
    return box;
}

struct box grid_share(const struct box *box, int threads, int thread) {
    struct box share = *box;
    long planes = box->range[Z].end - box->range[Z].begin;
    int d = planes >= threads ? Z : Y;
    struct range part = split_range(box->range[d].end - box->range[d].begin, threads, thread);
    share.range[d] = (struct range){box->range[d].begin + part.begin, box->range[d].begin + part.end};
    return share;
}

/* Own points hold the start, points beyond a fixed boundary its values, the rest of the halo nothing yet. */
static void start_row(struct grid *grid, long y, long z) {
    struct box outside = grid_outside(grid);
    const long *points = grid->plan.points;
    double *start = grid_row(grid, grid->values[0], y, z), *other = grid_row(grid, grid->values[1], y, z);
    bool own_row = y >= 0 && y < grid->size[Y] && z >= 0 && z < grid->size[Z];
    long j = y + grid->own.range[Y].begin, k = z + grid->own.range[Z].begin;
    bool beyond_row = !grid->plan.periodic && (j < 0 || j >= points[Y] || k < 0 || k >= points[Z]);
    for (long x = outside.range[X].begin; x < outside.range[X].end; x++) {
        long i = x + grid->own.range[X].begin;
        bool own = own_row && x >= 0 && x < grid->size[X];
        bool beyond = beyond_row || (!grid->plan.periodic && (i < 0 || i >= points[X]));
        double value = own || beyond ? field_value(&grid->field, i, j, k, 1.0) : NAN;
        start[x] = value;
        other[x] = beyond ? value : NAN;
    }
}

void grid_start(struct grid *grid, int threads) {
    struct box outside = grid_outside(grid), inside = grid_inside(grid);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; thread++) {
        struct box share = grid_share(&inside, threads, thread);
        for (int d = Y; d <= Z; d++) { /* the outermost shares take the halo with them */
            if (share.range[d].begin == 0)
                share.range[d].begin = outside.range[d].begin;
            if (share.range[d].end == inside.range[d].end)
                share.range[d].end = outside.range[d].end;
        }
        for (long z = share.range[Z].begin; z < share.range[Z].end; z++)
            for (long y = share.range[Y].begin; y < share.range[Y].end; y++)
                start_row(grid, y, z);
    }
}

static void judge_row(const struct grid *grid, int which, long y, long z, double scale,
                      struct findings *found) {
    double *at = grid->values[which];
    const double *row = grid_row(grid, at, y, z), *y_before = grid_row(grid, at, y - 1, z),
                 *y_after = grid_row(grid, at, y + 1, z), *z_before = grid_row(grid, at, y, z - 1),
                 *z_after = grid_row(grid, at, y, z + 1);
    long size = grid->size[X], j = y + grid->own.range[Y].begin, k = z + grid->own.range[Z].begin;
    const long *points = grid->plan.points;
    for (long x = 0; x < size; x++) {
        double before = row[grid->wrap[X] && x == 0 ? size - 1 : x - 1];
        double after = row[grid->wrap[X] && x + 1 == size ? 0 : x + 1];
        double next = mean_of_six(before, after, y_before[x], y_after[x], z_before[x], z_after[x]);
        long i = x + grid->own.range[X].begin;
        findings_add(found, (uint64_t)((k * points[Y] + j) * points[X] + i), row[x], next,
                     field_value(&grid->field, i, j, k, scale));
    }
}

struct findings grid_findings(const struct grid *grid, int which, long sweeps, int threads) {
    struct findings mine = {0}, all = {0};
    double scale = pow(grid->field.decay, (double)sweeps);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (long z = 0; z < grid->size[Z]; z++) {
        struct findings plane = {0};
        for (long y = 0; y < grid->size[Y]; y++)
            judge_row(grid, which, y, z, scale, &plane);
#pragma omp critical
        findings_merge(&mine, &plane);
    }
    /* MPI_MAX need not keep what is not a number; infinity stands for it. */
    double largest[2] = {isnan(mine.residual) ? INFINITY : mine.residual,
                         isnan(mine.error) ? INFINITY : mine.error};
    MPI_Allreduce(MPI_IN_PLACE, largest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&mine.checksum, &all.checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    all.residual = largest[0];
    all.error = largest[1];
    return all;
}
