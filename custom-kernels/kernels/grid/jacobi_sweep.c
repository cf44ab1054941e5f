#include "jacobi_sweep.h"

#include "hardware.h"
#include "jacobi_row.h"

/* Rows by which a sweep from memory prefetches. */
enum { AHEAD_ROWS = 2 };

static void sweep_row(const struct grid *grid, int from, long y, long z, struct range x,
                      const struct sweep *sweep) {
    double *source = grid->values[from], *to = grid_row(grid, grid->values[1 - from], y, z);
    const double *middle = grid_row(grid, source, y, z);
    struct rows rows = {middle, grid_row(grid, source, y - 1, z), grid_row(grid, source, y + 1, z),
                        grid_row(grid, source, y, z - 1), grid_row(grid, source, y, z + 1)};
    double left = middle[grid->wrap[X] && x.begin == 0 ? grid->size[X] - 1 : x.begin - 1];
    double right = middle[grid->wrap[X] && x.end == grid->size[X] ? 0 : x.end];
    if (sweep->streaming)
        update_row(to, rows, x.begin, x.end, left, right, true, sweep->ahead);
    else
        update_row(to, rows, x.begin, x.end, left, right, false, sweep->ahead);
}

void sweep_box(const struct grid *grid, int from, const struct box *box, const struct sweep *sweep) {
    if (box_points(box) == 0)
        return;
    const struct range y = box->range[Y], z = box->range[Z];
    for (long begin = y.begin; begin < y.end; begin += sweep->block) {
        long end = begin + sweep->block < y.end ? begin + sweep->block : y.end;
        for (long k = z.begin; k < z.end; k++)
            for (long j = begin; j < end; j++)
                sweep_row(grid, from, j, k, box->range[X], sweep);
    }
    if (sweep->streaming)
        streams_end();
}

static void copy_row(const double *from, double *to, long size, bool streaming) {
    long x = 0;
    for (; x + SIMD_LANES <= size; x += SIMD_LANES)
        vector_put(to + x, vector_load(from + x), streaming);
    for (; x < size; x++)
        to[x] = from[x];
}

void sweep_copy(const struct grid *grid, int from, const struct box *box, bool streaming) {
    const struct range y = box->range[Y], z = box->range[Z];
    for (long k = z.begin; k < z.end; k++)
        for (long j = y.begin; j < y.end; j++) {
            const double *row = grid_row(grid, grid->values[from], j, k);
            double *to = grid_row(grid, grid->values[1 - from], j, k);
            if (streaming)
                copy_row(row, to, grid->size[X], true);
            else
                copy_row(row, to, grid->size[X], false);
        }
    if (streaming)
        streams_end();
}

double sweep_bytes(bool streaming) {
    return streaming && SIMD_STREAMS ? 16.0 : 24.0;
}

long sweep_ahead(const struct grid *grid) {
    return AHEAD_ROWS * grid->pitch;
}

/* Rows for which three planes of the source and one of the target fit half of the last cache, or of its part
 * for one thread where `threads` share it. */
static long fitting_rows(const struct grid *grid, int threads) {
    double share = (double)last_cache_bytes() / (double)threads;
    if (share < (double)cache_bytes(2)) /* a private second level is not shared by the threads */
        share = (double)cache_bytes(2);
    long rows = (long)(share / 2.0 / (4.0 * sizeof(double) * (double)grid->pitch)) - 2;
    return rows < 1 ? 1 : rows;
}

struct sweep sweep_plain(const struct grid *grid, int threads, bool streaming) {
    return (struct sweep){streaming, fitting_rows(grid, threads), sweep_ahead(grid)};
}
