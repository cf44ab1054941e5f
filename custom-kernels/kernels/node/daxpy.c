/* y = y + a x: the cost of a first touch of the memory by the wrong thread. */
#include "fail_together.h"
#include "first_touch.h"
#include "hardware.h"
#include "program.h"
#include "result.h"
#include "share.h"
#include "timer.h"

#include <math.h>
#include <omp.h>
#include <unistd.h>

enum touch { BOTH, THREAD, MASTER };

static size_t size;
static long repetitions = 20;
static int chosen;

static const char *const touch_words[] = {"both", "thread", "master", NULL};

static const struct argument arguments[] = {
    {"--size", ARGUMENT_SIZE, &size, 0, 1e13, NULL,
     "elements of each array and rank; 0: 4 x all last-level caches / ranks of the node"},
    {"--touch", ARGUMENT_CHOICE, &chosen, 0, 0, touch_words,
     "who writes the arrays first: the thread that works on them, or the master"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1000, NULL,
     "timed repetitions; the best one counts"},
    {.name = NULL},
};

static const struct program program = {
    .name = "daxpy",
    .summary = "y = y + a x in memory that was first touched by each thread, or by the master thread",
    .method = "A page lies on the NUMA node of the thread that touches it first, unless a memory policy\n"
              "says otherwise (plumb-bind --memory). Touched by the master, all pages lie on its node, and\n"
              "the threads on other nodes read remote memory, all from one memory controller.\n"
              "bandwidth: 24 bytes per element (two loads, one store) of all ranks / the best repetition; a\n"
              "repetition begins behind a barrier of all ranks and lasts until the slowest is done. Both\n"
              "kinds of touch are timed in turn.\n"
              "working_set: the bytes of both arrays on all ranks.\n"
              "rate: 2 flops per element by the same time. first_touch_ratio: bandwidth / that of master.\n"
              "Model: 12 bytes of memory traffic per flop: the rate is at most bandwidth / 12, and the\n"
              "limit of the bandwidth is what membw measures for daxpy on the same CPUs; on one NUMA node\n"
              "the ratio is 1.\n"
              "Check: y is 2 + repetitions exactly (a = 0.5, x = 2), in every element.",
    .arguments = arguments,
};

/* A pair of vectors, who touched it first, and its shortest repetition in s. */
struct vectors {
    enum touch touch;
    double *x, *y, best;
    size_t length;
};

static size_t elements(void) {
    int ranks;
    MPI_Comm_size(program_node(), &ranks);
    return size ? size : 4 * all_last_caches_bytes() / sizeof(double) / (size_t)ranks + 1;
}

/* The part of the calling thread: whole pages. */
static struct share own_share(size_t length) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE) / sizeof(double);
    return share_of(length, page, omp_get_thread_num(), omp_get_num_threads());
}

static void set(struct vectors *vectors, struct share share) {
    for (size_t i = share.begin; i < share.end; i++) {
        vectors->x[i] = 2.0;
        vectors->y[i] = 1.0;
    }
}

static void daxpy(double *restrict y, const double *restrict x, double a, struct share share) {
    for (size_t i = share.begin; i < share.end; i++)
        y[i] += a * x[i];
}

/* One repetition, in s on this rank. */
static double repeat(const struct vectors *vectors) {
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
#pragma omp parallel
    daxpy(vectors->y, vectors->x, 0.5, own_share(vectors->length));
    return ticks_s(ticks() - begin);
}

/* The largest error of y on any rank. */
static double error_of(const struct vectors *vectors) {
    double wanted = 1.0 + (double)(repetitions + 1), error = 0.0;
#pragma omp parallel for reduction(max : error) schedule(static)
    for (size_t i = 0; i < vectors->length; i++)
        error = fmax(error, fabs(vectors->y[i] - wanted));
    return ranks_max(error);
}

static struct vectors take(enum touch touch, size_t length) {
    size_t bytes = length * sizeof(double);
    struct vectors vectors = {touch, memory_take(bytes), memory_take(bytes), INFINITY, length};
    if (touch == MASTER)
        set(&vectors, (struct share){0, length});
    else {
#pragma omp parallel
        set(&vectors, own_share(length));
    }
    return vectors;
}

/* Both kinds of vectors in turn, so that a busy moment of the machine hits both. The first round is not
 * timed. */
static void measure(struct vectors *all, int count) {
    for (long round = 0; round <= repetitions; round++)
        for (int index = 0; index < count; index++) {
            double seconds = ranks_max(repeat(&all[index]));
            if (round > 0)
                all[index].best = fmin(all[index].best, seconds);
        }
}

static void report(struct result *result, const struct vectors *vectors, const struct vectors *master) {
    double everywhere = ranks_sum((double)vectors->length);
    struct row *row = result_row(result);
    row_text(row, "touch", touch_words[vectors->touch]);
    row_integer(row, "working_set", (long long)(16.0 * everywhere));
    row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, 24.0 * everywhere / vectors->best * 1e-6,
               repetitions);
    row_figure(row, "rate", "GFlop/s", HIGHER_IS_BETTER, 2.0 * everywhere / vectors->best * 1e-9,
               repetitions);
    if (master)
        row_figure(row, "first_touch_ratio", "1", HIGHER_IS_BETTER, master->best / vectors->best,
                   repetitions);
    double error = error_of(vectors);
    result_check(result, error == 0.0,
                 vectors->touch == MASTER ? "y, touched by the master" : "y, touched by each thread", error,
                 0.0);
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    size_t length = elements(), bytes = length * sizeof(double);
    struct vectors all[2];
    int count = 0;
    memory_need((chosen == BOTH ? 4 : 2) * bytes);
    for (enum touch touch = THREAD; touch <= MASTER; touch++)
        if (chosen == BOTH || chosen == (int)touch)
            all[count++] = take(touch, length);
    measure(all, count);
    struct result *result = result_new();
    for (int index = 0; index < count; index++)
        report(result, &all[index], count > 1 ? &all[1] : NULL);
    result_model(result,
                 "12 bytes of memory traffic per flop; the limit is the bandwidth of membw --kernels daxpy");
    for (int index = 0; index < count; index++) {
        memory_give_back(all[index].x, bytes);
        memory_give_back(all[index].y, bytes);
    }
    return result_finish(result);
}
