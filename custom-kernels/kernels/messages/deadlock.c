/* Every rank sends a value to its right neighbour and receives one from its left: four ways, one of which
 * never ends. */
#include "fail_together.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"
#include "warm_up.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCKING, RING, FIXED, NONBLOCKING };
enum { TAG = 7 };

static const char *const modes[] = {"blocking", "ring", "fixed", "nonblocking", NULL};
static int mode = FIXED;
static long repetitions = 1000;

static const struct argument arguments[] = {
    {"--mode", ARGUMENT_CHOICE, &mode, 0, 0, modes, "how the ranks exchange; 'blocking' never ends"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e7, NULL, "timed exchanges; the median counts"},
    {.name = NULL},
};

static const struct program program = {
    .name = "deadlock",
    .summary = "a ring exchange that waits for itself, and three that do not",
    .method =
        "blocking     every rank calls MPI_Ssend, then MPI_Recv: nobody receives, and all wait for ever. A\n"
        "             harness must end the job at its time limit and say where the ranks wait.\n"
        "ring         rank 0 sends first, the others receive first: right, but one rank after the other\n"
        "fixed        MPI_Sendrecv: the library orders the two (MPI 4.0, 3.10)\n"
        "nonblocking  MPI_Irecv and MPI_Isend, then MPI_Waitall\n"
        "Figure: time of one exchange on the slowest rank. Check: the left neighbour's value, each time.\n"
        "Model: none; 'ring' grows with the ranks, the others do not.",
    .arguments = arguments,
};

/* What `from` sends in an exchange. */
static double value_of(int from, long exchange) {
    return 1000.0 * (double)exchange + (double)from;
}

static double exchange_values(double mine, int left, int right) {
    double got = NAN;
    MPI_Request requests[2];
    switch (mode) {
    case BLOCKING:
        MPI_Ssend(&mine, 1, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case RING:
        if (program_rank() == 0)
            MPI_Ssend(&mine, 1, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (program_rank() != 0)
            MPI_Ssend(&mine, 1, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD);
        break;
    case FIXED:
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, right, TAG, &got, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        break;
    case NONBLOCKING:
        MPI_Irecv(&got, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&mine, 1, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        break;
    }
    return got;
}

/* Seconds of every exchange into `times`; returns how many values were not the left neighbour's. */
static long measure(double *times, struct warm_ups *warm_ups) {
    int ranks = program_ranks(), rank = program_rank();
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    long wrong = 0;
    struct warm_up warm_up = warm_up_new(WARM_UP_S);
    while (warm_up_next(&warm_up, MPI_COMM_WORLD))
        for (long call = 0; call < warm_up.calls; call++)
            exchange_values(value_of(rank, call), left, right);
    warm_ups_count(warm_ups, &warm_up);
    for (long exchange = 0; exchange < repetitions; exchange++) {
        uint64_t begin = ticks();
        double got = exchange_values(value_of(rank, exchange), left, right);
        times[exchange] = ticks_s(ticks() - begin);
        wrong += got != value_of(left, exchange);
    }
    return wrong;
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    if (program_ranks() < 2)
        fail_together("2 ranks needed, 1 given: start it with mpirun -n 2");
    double *times = allocate((size_t)repetitions, sizeof *times);
    struct warm_ups warm_ups = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    double wrong = ranks_sum((double)measure(times, &warm_ups));
    double median = ranks_max(summarize(times, (size_t)repetitions).median);
    free(times);
    struct result *result = result_new();
    warm_ups_remark(result, &warm_ups);
    result_model(result, "none: the library's latency decides");
    struct row *row = result_row(result);
    row_text(row, "mode", modes[mode]);
    row_integer(row, "ranks", program_ranks());
    row_figure(row, "time", "us", LOWER_IS_BETTER, median * 1e6, repetitions);
    result_check(result, wrong == 0.0, "values that are not the left neighbour's", wrong, 0.0);
    return result_finish(result);
}
