/* C = A B, or C = C + A B, by the BLAS on all threads, beside the peak that a register-only loop reaches at
 * the same clock. */
#include "blas.h"
#include "dgemm_check.h"
#include "fail_together.h"
#include "first_touch.h"
#include "fma_peak.h"
#include "program.h"
#include "result.h"
#include "share.h"
#include "simd.h"
#include "timer.h"
#include "work.h"

#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>

enum { SIZE_OF_ONE = 1536, ROUNDING = 64, TRIAL_LOOPS = 100000, MOST_TIMES = 10 };
/* Percent of the peak below which the result gives a likely cause, and the rows below which a block is too
 * small to reach it. */
enum { ENOUGH = 80, SMALL_BLOCK = 256 };

static size_t size, depth;
static long repetitions = 5;

static const struct argument arguments[] = {
    {"--size", ARGUMENT_SIZE, &size, 0, 1e6, NULL,
     "rows and columns of the matrices of each rank; 0: 1536 x the root of its threads"},
    {"--depth", ARGUMENT_SIZE, &depth, 0, 1e6, NULL,
     "columns of A: C = C + A B, an update of that rank; 0: C = A B, all matrices square"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL,
     "timed repetitions at least; the best one counts"},
    {.name = NULL},
};

static const struct program program = {
    .name = "dgemm",
    .summary = "matrix product by the BLAS of the stack, and the percentage of the peak that it reaches",
    .method =
        "Every rank multiplies matrices of its own. Its threads take a block of C each and call DGEMM\n"
        "with one BLAS thread, so that the threads stay where they were placed.\n"
        "rate: 2 n^2 k flops of every rank / the best repetition, which begins behind a barrier of all\n"
        "ranks and ends with the slowest.\n"
        "peak: fused multiply-adds between registers on all threads at once, timed in turn with the\n"
        "products, in the same way and for as long, so that both see the same clock. efficiency: rate\n"
        "/ peak. A build without vector multiply-adds has no efficiency.\n"
        "Repetitions go on, up to ten times as many, until the best two products and the best two\n"
        "peaks agree within 2 % and no product beats the peak: a disturbed machine settles late.\n"
        "Model: the peak. A product of large matrices does not wait for memory; an update of rank k\n"
        "loads and stores each element of C for 2 k flops. Below 80 % of the peak a remark says why.\n"
        "Check (Freivalds): C x against A (B x) for a random x, times the number p of products that an\n"
        "update added; every row within (2 n + 2 k + p + 3) u |A| |B| |x|, which is what rounding alone\n"
        "may add up to (u = 2^-53; Higham, Accuracy and Stability, 3.5; p is 1 for C = A B).",
    .arguments = arguments,
    .work = true,
};

/* Threads as a grid over C: as square as their number allows. */
struct grid {
    int rows, columns;
};

static struct grid grid_of(int threads) {
    int rows = (int)sqrt((double)threads);
    while (threads % rows != 0)
        rows--;
    return (struct grid){rows, threads / rows};
}

/* The block of C that is the calling thread's. */
static void own_block(const struct matrices *all) {
    struct grid grid = grid_of(omp_get_num_threads());
    int thread = omp_get_thread_num();
    struct share row = share_of(all->n, 8, thread % grid.rows, grid.rows);
    struct share column = share_of(all->n, 8, thread / grid.rows, grid.columns);
    const int m = (int)(row.end - row.begin), n = (int)(column.end - column.begin);
    const int rows = (int)all->n, k = (int)all->k;
    const double one = 1.0, beta = all->update ? 1.0 : 0.0;
    if (m == 0 || n == 0)
        return;
    BLAS(dgemm_)
    ("N", "N", &m, &n, &k, &one, all->a + row.begin, &rows, all->b + column.begin * all->k, &k, &beta,
     all->c + column.begin * all->n + row.begin, &rows, 1, 1);
}

/* One product of every rank, in s. */
static double multiply(struct matrices *all) {
    work_begin();
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
#pragma omp parallel
    own_block(all);
    all->products++;
    double seconds = ticks_s(ticks() - begin);
    work_end(2.0 * (double)all->n * (double)all->n * (double)all->k, 0.0);
    return ranks_max(seconds);
}

/* The loop on every thread of every rank, in s; `flops` receives what this rank did. */
static double peak(long loops, double *flops) {
    double done = 0.0, sink = 0.0;
    work_begin();
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
#pragma omp parallel reduction(+ : done, sink)
    done += fma_work(loops, &sink);
    double seconds = ticks_s(ticks() - begin);
    work_end(done, 0.0);
    *flops = isfinite(sink) ? done : NAN;
    return ranks_max(seconds);
}

/* Loops that take as long as a product does: what disturbs the machine then hits both alike. */
static long loops_like(double product) {
    double flops, trial = peak(TRIAL_LOOPS, &flops);
    trial = fmin(trial, peak(TRIAL_LOOPS, &flops));
    return (long)(TRIAL_LOOPS * fmax(1.0, product / trial));
}

/* The shortest two of the times so far, in s. */
struct shortest {
    double first, second;
};

static struct shortest with(struct shortest times, double time) {
    if (time < times.first)
        return (struct shortest){time, times.first};
    return (struct shortest){times.first, fmin(times.second, time)};
}

static bool settled(struct shortest times) {
    return times.second <= 1.02 * times.first;
}

/* The likeliest reason why `all` was multiplied at `rate` where the peak is `limit`: what is known for sure
 * first. */
static void slow(struct result *result, double rate, double limit, const struct matrices *all, bool steady) {
    const size_t rows = all->n / (size_t)grid_of(program_threads()).rows;
    char cause[256];
    if (blas_lanes() && blas_lanes() < SIMD_LANES)
        snprintf(cause, sizeof cause,
                 "the BLAS chose kernels for %s with vectors of %d doubles, where %s has %d", blas_kernels(),
                 blas_lanes(), SIMD_NAME, SIMD_LANES);
    else if (rows < SMALL_BLOCK)
        snprintf(cause, sizeof cause, "small matrices: a thread's block has %zu rows", rows);
    else if (!steady)
        snprintf(cause, sizeof cause, "a disturbed machine: the best two times differ by more than 2 %%");
    else if (all->update) /* 16 bytes of C for 2 k flops */
        snprintf(cause, sizeof cause,
                 "the kernels of this BLAS, or memory: at the peak, C alone moves %.1f GB/s",
                 limit * 8.0 / (double)all->k);
    else
        snprintf(cause, sizeof cause, "this BLAS (no other cause was found); try another one");
    result_remark(result, "%.1f %% of the peak of the same run, less than %d %%; likely cause: %s",
                  100.0 * rate / limit, ENOUGH, cause);
}

static void notes(struct result *result) {
    result_model(result, "the peak that fused multiply-adds between registers reach on the same threads");
    result_remark(result, "BLAS: %s; kernels for %s; peak measured with %s%s",
                  blas_version() ? blas_version() : "does not report its name",
                  blas_kernels() ? blas_kernels() : "a processor that it does not name", SIMD_NAME,
                  SIMD_FMA ? "" : ", not the processor's peak: no efficiency; build with -march=native");
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    size_t rounded = (size_t)(SIZE_OF_ONE * sqrt((double)program_threads()) / ROUNDING) * ROUNDING;
    size_t n = size ? size : rounded;
    const size_t k = depth ? depth : n;
    memory_need((n * n + 2 * n * k) * sizeof(double));
    blas_one_thread();
    struct matrices all = matrices_take(n, k, depth > 0);
    const double ranks = (double)program_ranks(), product_flops = 2.0 * (double)n * (double)n * (double)k;
    struct shortest product = {INFINITY, INFINITY}, loop = {INFINITY, INFINITY};
    double loop_flops = 0.0, limit = 0.0, rate = 0.0;
    multiply(&all);
    long loops = loops_like(multiply(&all)), done = 0;
    while (done < repetitions || (done < MOST_TIMES * repetitions &&
                                  (!settled(product) || !settled(loop) || (SIMD_FMA && rate > limit)))) {
        loop = with(loop, peak(loops, &loop_flops));
        product = with(product, multiply(&all));
        limit = ranks * loop_flops / loop.first * 1e-9;
        rate = ranks * product_flops / product.first * 1e-9;
        done++;
    }
    struct result *result = result_new();
    struct row *row = result_row(result);
    row_integer(row, "size", (long long)n);
    row_integer(row, "depth", (long long)k);
    row_figure(row, "rate", "GFlop/s", HIGHER_IS_BETTER, rate, done);
    if (SIMD_FMA)
        row_limit(row, limit);
    row_figure(row, "peak", "GFlop/s", HIGHER_IS_BETTER, limit, done);
    notes(result);
    if (SIMD_FMA) {
        const double efficiency = 100.0 * rate / limit;
        row_figure(row, "efficiency", "%", HIGHER_IS_BETTER, efficiency, done);
        if (efficiency < ENOUGH)
            slow(result, rate, limit, &all, settled(product) && settled(loop));
    }
    matrices_check(result, &all);
    matrices_give_back(&all);
    return result_finish(result);
}
