/* Time of collective operations, and of messages between two halves of the ranks, by one or all of several
 * protocols (collective_protocol.h). */
#include "candidates.h"
#include "collective_call.h"
#include "collective_protocol.h"
#include "common_clock.h"
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "warm_up.h"

#include <math.h>
#include <stdlib.h>

enum { ALL_OPERATIONS = OPERATIONS };

static int operation = ALL_OPERATIONS, in_place, protocol = COMMON_START;
static struct sizes sizes = {7, {8, 64, 512, 4096, 32768, 131072, 1048576}};
static long repetitions = 200;
static const char *race = NULL;
static double late_us = 0.5, most_invalid = 25.0, most_seconds = 3.0;

static const char *const operations[] = {[BCAST] = "bcast",
                                         [REDUCE] = "reduce",
                                         [ALLREDUCE] = "allreduce",
                                         [SCAN] = "scan",
                                         [GATHER] = "gather",
                                         [GATHERV] = "gatherv",
                                         [SCATTER] = "scatter",
                                         [SCATTERV] = "scatterv",
                                         [ALLGATHER] = "allgather",
                                         [ALLGATHERV] = "allgatherv",
                                         [ALLTOALL] = "alltoall",
                                         [ALLTOALLV] = "alltoallv",
                                         [REDUCE_SCATTER] = "reduce_scatter",
                                         [REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
                                         [PINGPONG] = "pingpong",
                                         [EXCHANGE] = "exchange",
                                         [BARRIER] = "barrier",
                                         [ALL_OPERATIONS] = "all",
                                         NULL};
static const char *const places[] = {"no", "yes", "both", NULL};
enum { NOT_IN_PLACE, IN_PLACE, BOTH };
static const char *const protocols[] = {[COMMON_START] = "start", [AFTER_BARRIER] = "barrier",
                                        [LOOP] = "loop",          [CHANGING_BUFFERS] = "changing",
                                        [WORK_BETWEEN] = "work",  [WITH_GAPS] = "gaps",
                                        [PROTOCOLS] = "all",      NULL};

static const struct argument arguments[] = {
    {"--operation", ARGUMENT_CHOICE, &operation, 0, 0, operations, "what is called"},
    {"--in-place", ARGUMENT_CHOICE, &in_place, 0, 0, places,
     "with MPI_IN_PLACE; both: without and, where MPI has it, with it"},
    {"--protocol", ARGUMENT_CHOICE, &protocol, 0, 0, protocols, "how the timed calls begin; see below"},
    {"--bytes", ARGUMENT_SIZES, &sizes, 4, 1 << 30, NULL,
     "what one rank gives one other, or the vector of bcast, reduce, allreduce, scan; multiples of 4"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, LEAST_FOR_INTERVAL, 1e6, NULL,
     "timed calls of each size"},
    {"--seconds", ARGUMENT_REAL, &most_seconds, 0, 1e6, NULL,
     "of a size: a size that takes longer has fewer calls, at least 6"},
    {"--race", ARGUMENT_TEXT, &race, 0, 0, NULL,
     "NAME=VALUE,VALUE: a setting of the MPI library, its values in turn, against the value that it has"},
    {"--late", ARGUMENT_REAL, &late_us, 0, 1e9, NULL,
     "us that the last rank may start after the first, beside the clock error: more is an invalid window"},
    {"--most-invalid", ARGUMENT_REAL, &most_invalid, 0, 100, NULL,
     "percent of invalid windows up to which a result is one"},
    {.name = NULL},
};

static const struct program program = {
    .name = "collective",
    .summary =
        "time of collective operations and of messages, by default call by call from a common start to the "
        "last exit",
    .method =
        "Before each call the ranks agree on a start (Allreduce of the latest clock, plus a lead) and wait "
        "for it\n"
        "reading the clock; all calls are to MPI_COMM_WORLD, the root is rank 0, reductions add floats.\n"
        "pingpong, exchange: each rank of one half with one of the other, there and back (20\n"
        "              times, the same data; time is of once) or both ways at once.\n"
        "time          exit of the last rank - start of the first one: median over the valid windows\n"
        "Other protocols (--protocol); time is that of the slowest rank by its own clock, median over "
        "samples:\n"
        "barrier       one call behind a barrier, as OSU and IMB do\n"
        "loop          8 to 128 calls one after the other on the same buffers, about 50 us together; time / "
        "calls\n"
        "changing      as loop, with 8 pairs of buffers in turn, or as many as 64 MiB hold, 2 at least\n"
        "work          8 calls; between them a rank works on 128 KiB of its own for as long as a call "
        "takes,\n"
        "              1 ms at most, which does not count\n"
        "gaps          as loop, with one element free between the blocks of gatherv, scatterv, allgatherv,\n"
        "              alltoallv; in the other protocols blocks lie one behind the other, as most programs "
        "have "
        "them\n"
        "time_low/high interval of the median, 95 %, order statistics (sign test); takes calls as "
        "independent\n"
        "ratio         time of a call with a value of --race / time of the call with the library's own value "
        "of the\n"
        "              same round: median over rounds; ratio_low/high as above\n"
        "invalid       windows whose ranks did not start together (--late), in percent of all\n"
        "clock_error   bound of the error of a difference between two ranks' clocks\n"
        "Clock: CLOCK_MONOTONIC. Ranks of one host read one clock: the kernel keeps it for all CPUs, and "
        "leaves a\n"
        "counter that differs between them for another source. Checked here by messages: none is read out of "
        "order.\n"
        "Several hosts (or time namespaces): offset to another clock = its reading - the middle of the round "
        "trip,\n"
        "the shortest of up to 64 counts, half of it bounds the error; before and after the calls of a size, "
        "a "
        "line\n"
        "between (drift); clocks in a tree, errors added up. After Hunold and Carpen-Amarie, Hierarchical "
        "clock\n"
        "synchronization in MPI (2018), and their ReproMPI.\n"
        "Checks: every element on every rank after every sample; nothing beside the blocks of the operations "
        "with "
        "v.\n"
        "Model: none: what a library could reach at best is not known here.",
    .arguments = arguments,
};

/* The calls of one size, `count` rounds of each candidate, in ns: of this rank's clock, then of common
 * time. */
struct windows {
    double *begin, *end; /* of a round all candidates, one after the other */
    long count;
    int calls; /* of a window */
};
static struct candidates *candidates;
static struct warm_ups warm_ups;

/* Totals over all rows. `cut`: rows with fewer calls because of --seconds; `fewest`: the fewest calls of a
 * row. worst_invalid is in percent, clock_error in ns. */
struct findings {
    long wrong, too_few, rows, cut, fewest;
    double worst_invalid, clock_error;
};

/* Calls without a common start, with each candidate until they take as long as before; what they give is not
 * looked at. */
static void get_steady(struct call *calls, int pairs) {
    for (int pair = 0; pair < pairs; pair++)
        call_prepare(&calls[pair], 0);
    for (int which = 0; which < candidates_count(candidates); which++) {
        struct warm_up warm_up = warm_up_new(fmin(WARM_UP_S, most_seconds));
        MPI_Comm all = candidates_take(candidates, which);
        for (int pair = 0; pair < pairs; pair++)
            calls[pair].all = all;
        while (warm_up_next(&warm_up, MPI_COMM_WORLD))
            for (long number = 0; number < warm_up.calls; number++)
                call_make(&calls[number % pairs]);
        warm_ups_count(&warm_ups, &warm_up);
    }
}

/* All calls of a size, or as many as --seconds has time for: the starts are agreed on, so all ranks end after
 * the same round. The candidates take turns at being the first of a round. Returns the number of wrong
 * elements on this rank. */
static long measure(enum protocol by, struct call *calls, int pairs, struct windows *windows) {
    struct agreed agreed = agreed_new(by);
    double begin, end, first = 0.0;
    bool over = false;
    long wrong = 0, of_round = candidates_count(candidates);
    windows->count = 0;
    get_steady(calls, pairs);
    clock_before();
    for (long round = 0; windows->count < (over ? LEAST_FOR_INTERVAL : repetitions); round++) {
        bool counts = round >= protocol_warm_up(by) || over;
        for (long turn = 0; turn < of_round; turn++) {
            int which = (int)((round + turn) % of_round);
            MPI_Comm all = candidates_take(candidates, which);
            for (int pair = 0; pair < pairs; pair++)
                calls[pair].all = all;
            wrong += protocol_sample(by, calls, round, &agreed, &begin, &end);
            windows->begin[windows->count * of_round + which] = begin;
            windows->end[windows->count * of_round + which] = end;
            first = first > 0.0 ? first : agreed.start;
        }
        windows->count += counts;
        over = agreed.start - first > 1e9 * most_seconds * (double)of_round;
    }
    windows->calls = agreed.calls;
    clock_after();
    candidates_take(candidates, 0);
    return wrong;
}

/* On rank 0: the time of every window in ns, round by round; NAN for a window that is not valid. To be freed.
 */
static double *times_of(enum protocol by, const struct windows *windows, double error) {
    size_t count = (size_t)windows->count * (size_t)candidates_count(candidates);
    double *first = allocate(count, sizeof *first), *last = allocate(count, sizeof *last),
           *times = allocate(count, sizeof *times), *longest = allocate(count, sizeof *longest);
    for (size_t index = 0; index < count; index++) {
        times[index] = windows->end[index] - windows->begin[index];
        windows->begin[index] = clock_common(windows->begin[index]);
        windows->end[index] = clock_common(windows->end[index]);
    }
    MPI_Reduce(times, longest, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(windows->begin, first, (int)count, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(windows->begin, last, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(windows->end, times, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (size_t index = 0; index < count; index++) {
        bool valid = by != COMMON_START || last[index] - first[index] <= 1e3 * late_us + error;
        times[index] =
            valid ? protocol_time(by, windows->calls, first[index], times[index], longest[index]) : NAN;
    }
    free(first);
    free(last);
    free(longest);
    return times;
}

/* The median of `count` values with its interval, as figures `name`, `name`_low and `name`_high. Sorts. */
static void row_median(struct row *row, const char *name, const char *unit, double *values, long count,
                       double scale) {
    char low[32], high[32];
    snprintf(low, sizeof low, "%s_low", name);
    snprintf(high, sizeof high, "%s_high", name);
    double median = summarize(values, (size_t)count).median;
    struct interval interval = median_interval(values, (size_t)count);
    row_figure(row, name, unit, LOWER_IS_BETTER, scale * median, count);
    row_figure(row, low, unit, LOWER_IS_BETTER, scale * interval.low, count);
    row_figure(row, high, unit, LOWER_IS_BETTER, scale * interval.high, count);
}

/* The row of a candidate; `times` are those of all candidates. */
static void report_one(struct result *result, enum protocol by, const struct call *call,
                       const struct windows *windows, const double *times, int which,
                       struct findings *found) {
    long step = candidates_count(candidates), valid = 0, pairs = 0;
    double *own = allocate((size_t)windows->count, sizeof *own),
           *ratios = allocate((size_t)windows->count, sizeof *own);
    for (const double *round = times; round < times + windows->count * step; round += step) {
        if (!isnan(round[which]))
            own[valid++] = round[which];
        if (!isnan(round[which]) && round[0] > 0.0)
            ratios[pairs++] = round[which] / round[0];
    }
    double invalid = 100.0 * (double)(windows->count - valid) / (double)windows->count;
    struct row *row = result_row(result);
    row_text(row, "operation", operations[call->operation]);
    row_text(row, "protocol", protocols[by]);
    if (call->operation != BARRIER) {
        row_integer(row, "bytes", (long long)(call->elements * sizeof(float)));
        row_text(row, "in_place", places[call->in_place]);
    }
    if (race)
        row_integer(row, candidates_setting(candidates), candidates_value(candidates, which));
    if (valid >= LEAST_FOR_INTERVAL)
        row_median(row, "time", "us", own, valid, 1e-3 / call->trips);
    if (race && pairs >= LEAST_FOR_INTERVAL)
        row_median(row, "ratio", "1", ratios, pairs, 1.0);
    found->too_few += valid < LEAST_FOR_INTERVAL || pairs < LEAST_FOR_INTERVAL;
    found->rows++;
    found->cut += windows->count < repetitions;
    if (by == COMMON_START) {
        row_figure(row, "invalid", "%", LOWER_IS_BETTER, invalid, windows->count);
        row_figure(row, "clock_error", "us", LOWER_IS_BETTER, 1e-3 * clock_error(), 1);
    }
    found->worst_invalid = fmax(found->worst_invalid, invalid);
    free(own);
    free(ratios);
}

static void report(struct result *result, enum protocol by, const struct call *call,
                   const struct windows *windows, struct findings *found) {
    double error = clock_error(), *times = times_of(by, windows, error);
    for (int which = 0; which < candidates_count(candidates); which++)
        report_one(result, by, call, windows, times, which, found);
    found->fewest = windows->count < found->fewest ? windows->count : found->fewest;
    found->clock_error = fmax(found->clock_error, error);
    free(times);
}

static void run_by(struct result *result, enum protocol by, enum operation which, bool inside, size_t bytes,
                   struct windows *windows, struct findings *found) {
    int pairs = protocol_buffers(by, which, bytes);
    struct call *calls = allocate((size_t)pairs, sizeof *calls);
    for (int pair = 0; pair < pairs; pair++) {
        calls[pair] = call_new(which, inside, by == WITH_GAPS, bytes);
        if (protocol_repeats(by))
            calls[pair].trips = 1;
    }
    found->wrong += measure(by, calls, pairs, windows);
    report(result, by, calls, windows, found);
    for (int pair = 0; pair < pairs; pair++)
        call_free(&calls[pair]);
    free(calls);
}

static void run(struct result *result, enum operation which, bool inside, size_t bytes,
                struct windows *windows, struct findings *found) {
    for (int by = 0; by < PROTOCOLS; by++)
        if ((protocol == PROTOCOLS || protocol == by) && protocol_fits((enum protocol)by, which))
            run_by(result, (enum protocol)by, which, inside, bytes, windows, found);
}

static void run_sizes(struct result *result, enum operation which, bool inside, struct windows *windows,
                      struct findings *found) {
    if (which == BARRIER)
        run(result, which, inside, 0, windows, found);
    else
        for (int index = 0; index < sizes.count; index++)
            run(result, which, inside, sizes.values[index], windows, found);
}

static void run_operation(struct result *result, enum operation which, struct windows *windows,
                          struct findings *found) {
    if (in_place != IN_PLACE)
        run_sizes(result, which, false, windows, found);
    if (in_place != NOT_IN_PLACE && operation_in_place(which))
        run_sizes(result, which, true, windows, found);
}

static void require_sense(void) {
    if (program_ranks() < 2)
        fail_together("1 rank has no collective: start at least 2");
    if (operation < OPERATIONS && in_place == IN_PLACE && !operation_in_place((enum operation)operation))
        fail_together("--in-place: MPI has no %s in place", operations[operation]);
    if (operation < OPERATIONS && protocol < PROTOCOLS &&
        !protocol_fits((enum protocol)protocol, (enum operation)operation))
        fail_together(
            "--protocol: the blocks of %s cannot lie apart: gaps is for gatherv, scatterv, allgatherv, "
            "alltoallv",
            operations[operation]);
    for (int index = 0; index < sizes.count; index++)
        if (sizes.values[index] % sizeof(float))
            fail_together("--bytes: %zu is not a multiple of 4: elements are floats", sizes.values[index]);
}

static void tell_clock(struct result *result, const struct findings *found) {
    if (clock_count() == 1)
        result_note(result,
                    "all ranks read one clock (CLOCK_MONOTONIC of their host); a reading costs %.3g ns",
                    found->clock_error);
    else
        result_note(result,
                    "%d clocks, synchronised before and after the calls of each size; drift of at least %.3g "
                    "ppm, error of "
                    "a difference at most %.3g us",
                    clock_count(), clock_drift_ppm(), 1e-3 * found->clock_error);
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    require_sense();
    clock_start();
    candidates = candidates_new(race);
    size_t most = (size_t)repetitions * (size_t)candidates_count(candidates);
    struct windows windows = {allocate(most, sizeof(double)), allocate(most, sizeof(double)), 0, 0};
    struct result *result = result_new();
    struct findings found = {.fewest = repetitions};
    for (int which = 0; which < OPERATIONS; which++)
        if (operation == ALL_OPERATIONS || operation == which)
            run_operation(result, (enum operation)which, &windows, &found);
    MPI_Allreduce(MPI_IN_PLACE, &found.wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    result_model(result, "none: what a library could reach at best is not known here");
    tell_clock(result, &found);
    if (found.cut)
        result_remark(
            result,
            "%ld of %ld rows have fewer calls than %ld, the least %ld: %g s of a size were over (--seconds)",
            found.cut, found.rows, repetitions, found.fewest, most_seconds);
    warm_ups_remark(result, &warm_ups);
    result_check(result, found.wrong == 0, "elements that are not the operation's", (double)found.wrong, 0);
    result_condition(result, found.worst_invalid <= most_invalid,
                     "windows that missed the common start, % of those of a row", found.worst_invalid,
                     most_invalid);
    result_condition(result, found.too_few == 0, "rows with too few valid windows for a median",
                     (double)found.too_few, 0);
    clock_end();
    candidates_free(candidates);
    free(windows.begin);
    free(windows.end);
    return result_finish(result);
}
