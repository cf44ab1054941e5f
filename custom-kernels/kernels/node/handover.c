/* A cache line handed back and forth between two threads: the lower bound on the latency of every message
 * between their cores. */
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"
#include "turns.h"

#include <omp.h>
#include <stdlib.h>

enum { BATCH = 1000 };

static long repetitions = 201;

static const struct argument arguments[] = {
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 2, 1e6, NULL,
     "timed batches of 1000 round trips; the first one is not counted"},
    {.name = NULL},
};

static const struct program program = {
    .name = "handover",
    .summary = "time to hand a cache line from one thread to another",
    .method =
        "Two threads of a rank take turns: each waits, looking all the time, until the other has written\n"
        "the next number into a word, and then writes the one after it. The line of the word goes back\n"
        "and forth between their cores; nothing else is on it.\n"
        "time: half a round trip, in the fastest batch of 1000; of several ranks, the slowest. mean: of\n"
        "all batches but the first.\n"
        "Model: none; it is itself the lower bound of the latency of messages in shared memory, which\n"
        "hand over at least one line.\n"
        "Check: the word ends at the number of all turns together.",
    .arguments = arguments,
};

/* ns of half a round trip in each batch. */
static void hand_over(struct word *word, double *each) {
#pragma omp parallel num_threads(2)
    for (long batch = 0; batch < repetitions; batch++) {
        int thread = omp_get_thread_num();
        uint64_t begin = ticks();
        take_turns(word, 2 * BATCH * (uint64_t)batch, BATCH, thread);
        if (thread == 0)
            each[batch] = ticks_ns(ticks() - begin) / (2.0 * BATCH);
    }
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    if (program_threads() != 2)
        fail_together("a line is handed over between two threads: set OMP_NUM_THREADS to 2, not %d",
                      program_threads());
    require_threads(2);
    struct word *word = memory_take(sizeof *word);
    double *each = allocate((size_t)repetitions, sizeof *each);
    atomic_store(&word->turn, 0);
    hand_over(word, each);
    struct summary found = summarize(each + 1, (size_t)repetitions - 1);
    struct result *result = result_new();
    struct row *row = result_row(result);
    row_integer(row, "turns", 2 * BATCH);
    row_figure(row, "time", "ns", LOWER_IS_BETTER, ranks_max(found.least), repetitions - 1);
    row_figure(row, "mean", "ns", LOWER_IS_BETTER, ranks_max(found.mean), repetitions - 1);
    result_model(result, "none: this is the lower bound of the latency of messages in shared memory");
    double error = ranks_max((double)atomic_load(&word->turn) - 2.0 * BATCH * (double)repetitions);
    result_check(result, error == 0.0, "turns taken", error, 0.0);
    free(each);
    memory_give_back(word, sizeof *word);
    return result_finish(result);
}
