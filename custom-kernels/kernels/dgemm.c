/* C = A B by the BLAS on all threads, beside the peak that a register-only loop reaches at the same clock. */
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

#include <math.h>
#include <omp.h>
#include <stdbool.h>

enum { SIZE_OF_ONE = 1536, ROUNDING = 64, TRIAL_LOOPS = 100000, MOST_TIMES = 10 };

static size_t size;
static long repetitions = 5;

static const struct argument arguments[] = {
    {"--size", ARGUMENT_SIZE, &size, 0, 1e6, NULL,
     "rows and columns of the matrices of each rank; 0: 1536 x the root of its threads"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL,
     "timed repetitions at least; the best one counts"},
    {.name = NULL},
};

static const struct program program = {
    .name = "dgemm",
    .summary = "matrix product by the BLAS of the stack, and the percentage of the peak that it reaches",
    .method = "Every rank multiplies matrices of its own. Its threads take a block of C each and call DGEMM\n"
              "with one BLAS thread, so that the threads stay where they were placed.\n"
              "rate: 2 n^3 flops of every rank / the best repetition, which begins behind a barrier of all\n"
              "ranks and ends with the slowest.\n"
              "peak: fused multiply-adds between registers on all threads at once, timed in turn with the\n"
              "products, in the same way and for as long, so that both see the same clock. efficiency: rate\n"
              "/ peak. A build without vector multiply-adds has no efficiency.\n"
              "Repetitions go on, up to ten times as many, until the best two products and the best two\n"
              "peaks agree within 2 % and no product beats the peak: a disturbed machine settles late.\n"
              "Model: the peak. A product of large matrices does not wait for memory.\n"
              "Check (Freivalds): C x against A (B x) for a random x; every row within (4 n + 4) u |A| |B|\n"
              "|x|, which is what rounding alone may add up to (u = 2^-53; Higham, Accuracy and Stability,\n"
              "3.5).",
    .arguments = arguments,
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
    const int m = (int)(row.end - row.begin), n = (int)(column.end - column.begin), k = (int)all->n;
    const double one = 1.0, zero = 0.0;
    if (m == 0 || n == 0)
        return;
    BLAS(dgemm_)
    ("N", "N", &m, &n, &k, &one, all->a + row.begin, &k, all->b + column.begin * all->n, &k, &zero,
     all->c + column.begin * all->n + row.begin, &k, 1, 1);
}

/* One product of every rank, in s. */
static double multiply(const struct matrices *all) {
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
#pragma omp parallel
    own_block(all);
    return ranks_max(ticks_s(ticks() - begin));
}

/* The loop on every thread of every rank, in s; `flops` receives what this rank did. */
static double peak(long loops, double *flops) {
    double done = 0.0, sink = 0.0;
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
#pragma omp parallel reduction(+ : done, sink)
    done += fma_work(loops, &sink);
    double seconds = ranks_max(ticks_s(ticks() - begin));
    *flops = isfinite(sink) ? done : NAN;
    return seconds;
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

static void one_blas_thread(void) {
    if (BLAS(openblas_set_num_threads))
        BLAS(openblas_set_num_threads)(1);
    if (MKL_Set_Num_Threads)
        MKL_Set_Num_Threads(1);
    if (bli_thread_set_num_threads)
        bli_thread_set_num_threads(1);
}

static void notes(struct result *result) {
    result_model(result, "the peak that fused multiply-adds between registers reach on the same threads");
    if (BLAS(openblas_get_config) && BLAS(openblas_get_corename))
        result_note(result, "BLAS: %s; kernels for %s", BLAS(openblas_get_config)(),
                    BLAS(openblas_get_corename)());
    result_note(result, "peak measured with %s%s", SIMD_NAME,
                SIMD_FMA ? ""
                         : ": not the processor's peak, so there is no efficiency; build with -march=native");
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    size_t rounded = (size_t)(SIZE_OF_ONE * sqrt((double)program_threads()) / ROUNDING) * ROUNDING;
    size_t n = size ? size : rounded;
    memory_need(3 * n * n * sizeof(double));
    one_blas_thread();
    struct matrices all = matrices_take(n);
    const double ranks = (double)program_ranks(), product_flops = 2.0 * (double)n * (double)n * (double)n;
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
    row_figure(row, "rate", "GFlop/s", HIGHER_IS_BETTER, rate, done);
    if (SIMD_FMA)
        row_limit(row, limit);
    row_figure(row, "peak", "GFlop/s", HIGHER_IS_BETTER, limit, done);
    if (SIMD_FMA)
        row_figure(row, "efficiency", "%", HIGHER_IS_BETTER, 100.0 * rate / limit, done);
    notes(result);
    matrices_check(result, &all);
    matrices_give_back(&all);
    return result_finish(result);
}
