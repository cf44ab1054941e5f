/* What OpenMP's loop schedules cost, and what they gain where iterations are not alike. */
#include "fail_together.h"
#include "hardware.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"

#include <omp.h>
#include <stdlib.h>

enum { EVEN, RAMP, LOADS };

static const char *const loads[] = {"even", "ramp"};
static const struct {
    const char *name;
    omp_sched_t kind;
} schedules[] = {{"static", omp_sched_static}, {"dynamic", omp_sched_dynamic}, {"guided", omp_sched_guided}};

enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static long iterations = 16384, work = 64, repetitions = 20;
static struct sizes chunks = {2, {1, 64}};

static const struct argument arguments[] = {
    {"--iterations", ARGUMENT_INTEGER, &iterations, 1, 1e8, NULL, "of the loop of each rank"},
    {"--work", ARGUMENT_INTEGER, &work, 1, 1e6, NULL, "steps of an iteration, on the average"},
    {"--chunks", ARGUMENT_SIZES, &chunks, 1, 1e8, NULL, "iterations that a thread takes at a time"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL, "timed loops; their median counts"},
    {.name = NULL},
};

static const struct program program = {
    .name = "loop_schedule",
    .summary = "a parallel loop under static, dynamic and guided schedules",
    .method =
        "A loop of short iterations, with the same work in each (even) or with work that grows from none to\n"
        "twice the average (ramp), by all threads of each rank.\n"
        "time: a loop, slowest rank, median. ratio: time x threads / time of the same loop by one thread,\n"
        "taken in turn: 1 is a loop that costs nothing to share. Under static, ramp leaves the first\n"
        "threads idle; dynamic and guided pay for each chunk instead.\n"
        "Model: the loop by one thread / threads. Check: the sum over all iterations.\n"
        "A remark says so if a node's ranks have more threads than CPUs together.",
    .arguments = arguments,
};

/* A generator of random numbers: each step waits for the one before, and no compiler can leave one out. */
static unsigned iterate(long index, long steps) {
    unsigned value = (unsigned)index + 1;
    for (long step = 0; step < steps; step++)
        value = value * 1664525u + 1013904223u;
    return value;
}

static unsigned loop(int load, int threads) {
    unsigned sum = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : sum) num_threads(threads)
    for (long index = 0; index < iterations; index++)
        sum += iterate(index,
                       load == RAMP ? (long)(2.0 * (double)work * (double)index / (double)iterations) : work);
    return sum;
}

/* One loop, in s; a wrong sum is counted. */
static double timed(int load, int threads, unsigned expected, long *wrong) {
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
    *wrong += loop(load, threads) != expected;
    return ranks_max(ticks_s(ticks() - begin));
}

static void measure(struct result *result, int load, int schedule, int chunk, long *wrong) {
    double *alone = allocate((size_t)repetitions, sizeof *alone);
    double *shared = allocate((size_t)repetitions, sizeof *shared);
    int threads = program_threads();
    omp_set_schedule(omp_sched_static, 0);
    const unsigned expected = loop(load, 1);
    for (long repetition = 0; repetition < repetitions; repetition++) {
        omp_set_schedule(omp_sched_static, 0);
        alone[repetition] = timed(load, 1, expected, wrong);
        omp_set_schedule(schedules[schedule].kind, chunk);
        *wrong += loop(load, threads) != expected; /* not timed: wakes threads that went to sleep */
        shared[repetition] = timed(load, threads, expected, wrong);
    }
    double one = summarize(alone, (size_t)repetitions).median,
           all = summarize(shared, (size_t)repetitions).median;
    struct row *row = result_row(result);
    row_text(row, "load", loads[load]);
    row_text(row, "schedule", schedules[schedule].name);
    row_integer(row, "chunk", chunk);
    row_figure(row, "time", "us", LOWER_IS_BETTER, all * 1e6, repetitions);
    row_limit(row, one / threads * 1e6);
    row_figure(row, "ratio", "1", LOWER_IS_BETTER, all * threads / one, repetitions);
    free(alone);
    free(shared);
}

/* A remark if the ranks of this node have more threads than there are CPUs that any of them may run on. */
static void remark_on_crowd(struct result *result) {
    int threads = program_threads();
    struct cpus cpus;
    require(cpus_of_threads(threads, &cpus), "the CPUs of the threads cannot be read");
    MPI_Allreduce(MPI_IN_PLACE, &threads, 1, MPI_INT, MPI_SUM, program_node());
    MPI_Allreduce(MPI_IN_PLACE, &cpus, sizeof cpus, MPI_BYTE, MPI_BOR, program_node());
    if (threads > cpus_count(&cpus))
        result_remark(result, "oversubscribed: %d threads on %d CPUs wait for each other's time slices",
                      threads, cpus_count(&cpus));
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    require_threads(program_threads());
    struct result *result = result_new();
    result_model(result, "the same loop by one thread / threads");
    long wrong = 0;
    for (int load = 0; load < LOADS; load++) {
        measure(result, load, 0, 0, &wrong);
        for (int schedule = 0; schedule < SCHEDULES; schedule++)
            for (int index = 0; index < chunks.count; index++)
                measure(result, load, schedule, (int)chunks.values[index], &wrong);
    }
    remark_on_crowd(result);
    double wrongs = ranks_sum((double)wrong);
    result_check(result, wrongs == 0.0, "the sum over all iterations", wrongs, 0);
    return result_finish(result);
}
