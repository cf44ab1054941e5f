/* The cost of false sharing: each thread increments its own counter; the counters are on the same cache
 * line, or on different ones. */
#include "barrier_kinds.h"
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum mode { ALL, PLAIN, ATOMIC, OWN };
enum { WIDEST = 4096, SPINS = 10000 };

static struct sizes paddings = {6, {8, 16, 32, 64, 128, 256}};
static long increments = 100000, repetitions = 51;
static int chosen;

static const char *const mode_words[] = {"all", "plain", "atomic", "own", NULL};

static const struct argument arguments[] = {
    {"--padding", ARGUMENT_SIZES, &paddings, 8, WIDEST, NULL, "bytes from one thread's counter to the next"},
    {"--mode", ARGUMENT_CHOICE, &chosen, 0, 0, mode_words, "how a counter is incremented"},
    {"--increments", ARGUMENT_INTEGER, &increments, 1, 1e12, NULL, "of every counter in a repetition"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL, "timed repetitions; their median counts"},
    {.name = NULL},
};

static const struct program program = {
    .name = "false_sharing",
    .summary = "cost of counters of different threads on one cache line, by their distance",
    .method =
        "Every thread of a rank increments a 64-bit counter of its own. Counters nearer than a cache\n"
        "line (64 or 128 bytes) share it although no data are shared: the line goes back and forth\n"
        "between the cores.\n"
        "plain: load, add, store; a store waits in the core's store buffer, which hides part of the\n"
        "cost. atomic: an indivisible add, which waits for the line every time. own: as plain, on a copy on\n"
        "the thread's own stack, which is added to the counter at the end.\n"
        "time: of one increment, in the slowest thread; the median of the repetitions, because in the\n"
        "shortest one the threads may have missed each other. Of several ranks, the slowest. A\n"
        "spinning barrier starts the threads together.\n"
        "ratio: the time divided by that at the largest padding of the run.\n"
        "Model: none beforehand; with every counter on a line of its own the ratio is 1.\n"
        "Check: every counter equals the number of increments of its thread.",
    .arguments = arguments,
};

static void add_plain(volatile uint64_t *counter) {
    for (long number = 0; number < increments; number++)
        *counter = *counter + 1;
}

/* The copy is volatile: it would otherwise be a register, or no loop at all. */
static void add_own(volatile uint64_t *counter) {
    volatile uint64_t own = 0;
    for (long number = 0; number < increments; number++)
        own = own + 1;
    *counter = *counter + own;
}

static void add_atomic(_Atomic uint64_t *counter) {
    for (long number = 0; number < increments; number++)
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* `count` repetitions of all increments; each[i] is the time of one increment in ns, in the slowest
 * thread. */
static void repeat(struct team *team, char *counters, size_t padding, enum mode mode, double *each,
                   long count) {
    uint64_t longest = 0;
#pragma omp parallel
    for (long repetition = 0; repetition < count; repetition++) {
        int thread = omp_get_thread_num();
        void *counter = counters + (size_t)thread * padding;
        team_wait(team, SPIN, thread);
        uint64_t begin = ticks();
        if (mode == PLAIN)
            add_plain(counter);
        else if (mode == OWN)
            add_own(counter);
        else
            add_atomic(counter);
        uint64_t own = ticks() - begin;
#pragma omp critical
        longest = own > longest ? own : longest;
        team_wait(team, SPIN, thread);
        if (thread == 0) {
            each[repetition] = ticks_ns(longest) / (double)increments;
            longest = 0;
        }
    }
}

/* By how much the counters are wrong, all together. */
static double error_of(const char *counters, size_t padding) {
    double wanted = (double)repetitions * (double)increments, error = 0.0;
    for (int thread = 0; thread < program_threads(); thread++) {
        uint64_t value;
        memcpy(&value, counters + (size_t)thread * padding, sizeof value);
        error += fabs((double)value - wanted);
    }
    return error;
}

/* The median repetition, in ns per increment. Adds to `error`. */
static double measure(struct team *team, enum mode mode, size_t padding, double *error) {
    size_t bytes = (size_t)program_threads() * WIDEST;
    char *counters = memory_take(bytes);
    double *each = allocate((size_t)repetitions, sizeof *each);
    memset(counters, 0, bytes);
    repeat(team, counters, padding, mode, each, repetitions);
    double median = summarize(each, (size_t)repetitions).median;
    free(each);
    *error += error_of(counters, padding);
    memory_give_back(counters, bytes);
    return ranks_max(median);
}

static void sweep(struct result *result, struct team *team, enum mode mode) {
    double times[MOST_SIZES], error = 0.0;
    int widest = 0;
    for (int index = 0; index < paddings.count; index++) {
        times[index] = measure(team, mode, paddings.values[index], &error);
        widest = paddings.values[index] > paddings.values[widest] ? index : widest;
    }
    for (int index = 0; index < paddings.count; index++) {
        struct row *row = result_row(result);
        row_text(row, "mode", mode_words[mode]);
        row_integer(row, "padding", (long long)paddings.values[index]);
        row_figure(row, "time", "ns", LOWER_IS_BETTER, times[index], repetitions);
        row_figure(row, "ratio", "1", LOWER_IS_BETTER, times[index] / times[widest], repetitions);
    }
    error = ranks_sum(error);
    static const char *const counters[] = {NULL, "plain counters", "atomic counters", "own counters"};
    result_check(result, error == 0.0, counters[mode], error, 0.0);
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    if (program_threads() < 2)
        fail_together("one thread shares nothing: set OMP_NUM_THREADS to 2 or more");
    for (int index = 0; index < paddings.count; index++)
        if (paddings.values[index] % 8 != 0)
            fail_together("--padding %zu is not a multiple of 8, the size of a counter",
                          paddings.values[index]);
    require_threads(program_threads());
    int *group = allocate((size_t)program_threads(), sizeof *group);
    struct team *team = team_new(program_threads(), group, SPINS);
    struct result *result = result_new();
    for (enum mode mode = PLAIN; mode <= OWN; mode++)
        if (chosen == ALL || chosen == (int)mode)
            sweep(result, team, mode);
    team_free(team);
    free(group);
    result_model(result, "none beforehand; with every counter on a line of its own the ratio is 1");
    return result_finish(result);
}
