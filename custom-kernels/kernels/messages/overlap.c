/* A large non-blocking message behind work in registers: how much of its time is hidden. */
#include "fail_together.h"
#include "first_touch.h"
#include "overlap_transfer.h"
#include "overlap_work.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "warm_up.h"

#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

enum { EVERY = 4 }; /* the value of "all", after those of the methods */

static const char *const modes[] = {"none", "test", "thread", "task", "all", NULL};
static const char *const directions[] = {"isend", "irecv"};
static int mode = EVERY;
static struct sizes bytes = {3, {64 << 10, 1 << 20, 80 << 20}};
static struct sizes works = {1, {100}};
static long repetitions = 9;
static double poll_us = 10.0;
static struct warm_ups warm_ups;

static const struct argument arguments[] = {
    {"--bytes", ARGUMENT_SIZES, &bytes, 8, 8.0 * INT_MAX, NULL, "messages; multiples of 8"},
    {"--work", ARGUMENT_SIZES, &works, 1, 10000, NULL, "work in percent of the message's time"},
    {"--mode", ARGUMENT_CHOICE, &mode, 0, 0, modes, "how the library is helped to move on"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL, "of each time; the median counts"},
    {"--poll", ARGUMENT_REAL, &poll_us, 0.1, 1e6, NULL, "us of work between two calls of MPI_Test"},
    {.name = NULL},
};

static int level(void) {
    return mode == EVERY || mode == METHOD_THREAD ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
}

static const struct program program = {
    .name = "overlap",
    .summary = "how much of a large non-blocking message is hidden behind work",
    .method =
        "Rank 0 starts the message (isend or irecv), works in registers, then waits for the message; rank 1\n"
        "is inside the blocking call all the time. Three times, each the median of the repetitions, taken "
        "in\n"
        "turn:\n"
        "  communication  start and wait, no work       work  no message       total  both\n"
        "  overlap = (communication + work - total) / min(communication, work), from 0 to 100 %\n"
        "With as much work as communication or more this is what the OSU micro-benchmarks print for\n"
        "non-blocking collectives (osu_ibcast), 100 - 100 (total - work) / communication; dividing by the\n"
        "smaller of the two keeps 100 % reachable with less work. Limits at 0 and 100 cut off what is "
        "noise.\n"
        "none    nothing between start and wait: what the library does by itself\n"
        "test    MPI_Test after every --poll us of work\n"
        "thread  a second OpenMP thread calls MPI_Iprobe all the time (thread level multiple)\n"
        "task    thread 0 communicates, all other threads work\n"
        "Work is a chain of integer multiplications, as many as take --work percent of the communication.\n"
        "Checks: the first word of every page of every message, the whole last one; the result of the work.\n"
        "Model: 100 %, total = max(communication, work).",
    .arguments = arguments,
    .thread_level = level,
};

/* Medians in us, meaningful on rank 0. */
struct times {
    double communication, work, total;
};

static double median(double *values) {
    return summarize(values, (size_t)repetitions).median;
}

/* Steps of work for `percent` of the time of a message without work, which is warmed up and measured first.
 */
static size_t choose_steps(struct transfer *transfer, double percent, double ns_per_step, double *room) {
    struct warm_up warm_up = warm_up_new(WARM_UP_S);
    while (warm_up_next(&warm_up, MPI_COMM_WORLD))
        for (long call = 0; call < warm_up.calls; call++)
            transfer_message(transfer, false, false);
    warm_ups_count(&warm_ups, &warm_up);
    for (long repetition = 0; repetition < repetitions; repetition++)
        room[repetition] = transfer_message(transfer, false, repetition == 0);
    return (size_t)fmax(1.0, median(room) * 1e3 * percent / 100.0 / ns_per_step);
}

static struct times measure(struct transfer *transfer) {
    double *room = allocate(3 * (size_t)repetitions, sizeof *room);
    double *communication = room, *work_alone = room + repetitions, *total = room + 2 * repetitions;
    for (long repetition = 0; repetition < repetitions; repetition++) {
        communication[repetition] = transfer_message(transfer, false, false);
        if (program_rank() == 0)
            work_alone[repetition] = transfer_work_only(transfer);
        total[repetition] = transfer_message(transfer, true, repetition == repetitions - 1);
    }
    struct times times = {median(communication), median(work_alone), median(total)};
    free(room);
    return times;
}

static void add_row(struct result *result, const struct transfer *transfer, long percent,
                    struct times times) {
    double hidden = times.communication + times.work - times.total;
    double overlap = 100.0 * hidden / fmin(times.communication, times.work);
    struct row *row = result_row(result);
    row_text(row, "mode", modes[transfer->method]);
    row_text(row, "direction", directions[transfer->direction]);
    row_integer(row, "bytes", (long long)(transfer->words * sizeof *transfer->buffer));
    row_integer(row, "work", percent);
    row_figure(row, "communication", "us", LOWER_IS_BETTER, times.communication, repetitions);
    row_figure(row, "computation", "us", LOWER_IS_BETTER, times.work, repetitions);
    row_figure(row, "total", "us", LOWER_IS_BETTER, times.total, repetitions);
    row_figure(row, "overlap", "%", HIGHER_IS_BETTER, fmin(100.0, fmax(0.0, overlap)), repetitions);
    row_limit(row, 100.0);
}

/* All sizes and works with one method in one direction. */
static void sweep(struct result *result, struct transfer *transfer, double ns_per_step) {
    double *room = allocate((size_t)repetitions, sizeof *room);
    for (int size = 0; size < bytes.count; size++)
        for (int work = 0; work < works.count; work++) {
            transfer->words = bytes.values[size] / sizeof *transfer->buffer;
            transfer_fill(transfer);
            double percent = (double)works.values[work];
            transfer->steps = choose_steps(transfer, percent, ns_per_step, room);
            add_row(result, transfer, (long)percent, measure(transfer));
        }
    free(room);
}

static void refuse_bad_input(void) {
    if (program_ranks() != 2)
        fail_together("2 ranks needed, %d given: start it with mpirun -n 2", program_ranks());
    for (int size = 0; size < bytes.count; size++)
        if (bytes.values[size] % 8)
            fail_together("--bytes: %zu is not a multiple of 8", bytes.values[size]);
    bool helped = mode == METHOD_THREAD || mode == METHOD_TASK;
    require(!helped || program_threads() >= 2, "--mode %s: 2 threads needed, %d given: set OMP_NUM_THREADS",
            modes[mode], program_threads());
    if (helped || mode == EVERY)
        require_threads(program_threads());
    memory_need(sizes_largest(&bytes));
}

static bool chosen(int method, int threads) {
    bool possible = threads >= 2 || (method != METHOD_THREAD && method != METHOD_TASK);
    return (mode == EVERY || mode == method) && possible;
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    refuse_bad_input();
    int threads = program_threads();
    MPI_Bcast(&threads, 1, MPI_INT, 0, MPI_COMM_WORLD); /* rank 0 is the one that works */
    double ns_per_step = work_calibrate();
    struct transfer transfer = {.buffer = memory_take(sizes_largest(&bytes)),
                                .test_steps = (size_t)fmax(1.0, poll_us * 1e3 / ns_per_step)};
    struct result *result = result_new();
    result_model(result, "100 %%: total = max(communication, work)");
    for (int method = METHOD_NONE; method < EVERY; method++)
        for (int direction = ISEND; direction <= IRECV && chosen(method, threads); direction++) {
            transfer.method = (enum method)method;
            transfer.direction = (enum direction)direction;
            sweep(result, &transfer, ns_per_step);
        }
    if (mode == EVERY && threads < 2)
        result_note(result, "modes thread and task left out: they need 2 threads (OMP_NUM_THREADS)");
    memory_give_back(transfer.buffer, sizes_largest(&bytes));
    long wrong[] = {transfer.wrong_messages, transfer.wrong_works};
    MPI_Allreduce(MPI_IN_PLACE, wrong, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    warm_ups_remark(result, &warm_ups);
    result_check(result, wrong[0] == 0, "messages that did not arrive as sent", (double)wrong[0], 0);
    result_check(result, wrong[1] == 0, "works with a wrong result", (double)wrong[1], 0);
    return result_finish(result);
}
