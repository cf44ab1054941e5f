/* MPI from threads: one large message or many small ones, sent from outside a parallel region, by one thread
 * inside it, by all threads in order, by all at once, or as the parts of one message. */
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "threaded_messages.h"
#include "warm_up.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALL = MODES, MOST_SHOWN = 16 };

static const char *const modes[] = {"serial", "one", "ordered", "concurrent", "partitioned", "all", NULL};
static const char *const levels[] = {"funneled", "serialized", "multiple", NULL};
static const int level_values[] = {MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
static const int needed_level[MODES] = {0, 0, 1, 2, 2}; /* indices of `levels` */
static int mode = ALL, level = 2;
static struct sizes bytes = {2, {64 << 10, 3200000}};
static struct sizes threads;
static long messages = 16, repetitions = 20;
static bool first;
static struct warm_ups warm_ups;
/* Seconds of a warm-up: an exchange takes milliseconds with its checks. */
static const double most_s = 0.5 * WARM_UP_S;

static const struct argument arguments[] = {
    {"--mode", ARGUMENT_CHOICE, &mode, 0, 0, modes, "where the MPI calls are made"},
    {"--level", ARGUMENT_CHOICE, &level, 0, 0, levels, "thread level to ask the library for"},
    {"--bytes", ARGUMENT_SIZES, &bytes, 8, INT_MAX, NULL, "of all messages together, one way"},
    {"--messages", ARGUMENT_INTEGER, &messages, 2, 32767, NULL,
     "small messages; the large one is as long as all"},
    {"--threads", ARGUMENT_SIZES, &threads, 1, 4096, NULL, "threads per rank"},
    {"--first", ARGUMENT_FLAG, &first, 0, 0, NULL,
     "begin with the mode, on the last of --threads: its cold_time is the run's first exchange"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 2, 1e6, NULL,
     "exchanges; the first is reported alone, a warm-up follows, the median of the others counts"},
    {.name = NULL},
};

static int thread_level(void) {
    return level_values[level];
}

static const struct program program = {
    .name = "threaded_pingpong",
    .summary = "messages from serial and parallel regions, one large against many small ones",
    .method =
        "Two ranks; every message goes there and back. The larger size is 400000 words or 16 x 25000.\n"
        "serial       outside of a parallel region, one large message and the small ones\n"
        "one          the same by thread 0 inside a parallel region (level funneled)\n"
        "ordered      the small ones dealt to the threads, sent in order (level serialized)\n"
        "concurrent   the same, all threads at once, told apart by tags (level multiple)\n"
        "partitioned  one message whose parts the threads declare ready: MPI_Psend_init, MPI_Pready (level\n"
        "             multiple, MPI 4.0)\n"
        "time: round trip of all messages, from a barrier of the threads to their next one; median without\n"
        "the first exchange, which is cold_time: connections and buffers are made in it. bandwidth: bytes\n"
        "both ways over time. efficiency: time of one large message from the serial region over this time.\n"
        "Other exchanges come before that of a mode, the large message at least; not so with --first, which\n"
        "has no efficiency therefore.\n"
        "latency, cold_latency: round trip of each small message (rows with 'message' in --json).\n"
        "broadcast: 4 bytes, the slower rank.\n"
        "Checks: every word of every message of every exchange; every value that was broadcast.\n"
        "Model: none; one large message from the serial region is what the others are compared with.",
    .arguments = arguments,
    .thread_level = thread_level,
};

/* What one kind of exchange took, in us; the arrays have an element per message. */
struct taken {
    double time, cold_time;
    double *each, *cold_each;
};

static double median_of_warm(double *values) {
    return summarize(values + 1, (size_t)repetitions - 1).median;
}

/* `samples` holds `messages` times for each repetition: the medians over the repetitions. */
static void reduce_messages(const struct exchange *exchange, const double *samples, struct taken *taken) {
    double *column = allocate((size_t)repetitions, sizeof *column);
    for (int message = 0; message < exchange->messages; message++) {
        for (long repetition = 0; repetition < repetitions; repetition++)
            column[repetition] = samples[repetition * exchange->messages + message];
        taken->cold_each[message] = column[0];
        taken->each[message] = median_of_warm(column);
    }
    free(column);
}

/* Exchanges between the first one and those that count; `times` has room for those of one. */
static void get_steady(struct exchange *exchange, double *times) {
    struct warm_up warm_up = warm_up_new(most_s);
    exchange->times = times;
    while (warm_up_next(&warm_up, MPI_COMM_WORLD))
        for (long call = 0; call < warm_up.calls; call++)
            exchange_once(exchange);
    warm_ups_count(&warm_ups, &warm_up);
}

static struct taken take(struct exchange *exchange) {
    size_t count = (size_t)exchange->messages;
    struct taken taken = {.each = allocate(count, sizeof(double)),
                          .cold_each = allocate(count, sizeof(double))};
    double *samples = allocate(count * (size_t)repetitions, sizeof *samples);
    double *totals = allocate((size_t)repetitions, sizeof *totals);
    exchange_begin(exchange);
    for (long repetition = 0; repetition < repetitions; repetition++) {
        exchange->times = samples + (size_t)repetition * count;
        totals[repetition] = exchange_once(exchange);
        if (repetition == 0)
            get_steady(exchange, samples + count);
    }
    exchange_end(exchange);
    taken.cold_time = totals[0];
    taken.time = median_of_warm(totals);
    reduce_messages(exchange, samples, &taken);
    free(samples);
    free(totals);
    return taken;
}

static struct row *new_row(struct result *result, const char *operation, enum mode which, int team,
                           size_t size, long count) {
    struct row *row = result_row(result);
    row_text(row, "mode", modes[which]);
    row_text(row, "operation", operation);
    row_integer(row, "threads", team);
    row_integer(row, "bytes", (long long)size);
    row_integer(row, "messages", count);
    return row;
}

static void note_times(struct result *result, const char *what, const double *times, int count) {
    char line[16 * MOST_SHOWN] = "";
    for (int message = 0, used = 0; message < count && message < MOST_SHOWN; message++)
        used += snprintf(line + used, sizeof line - (size_t)used,
                         times[message] < 1000.0 ? " %8.4g" : " %8.0f", times[message]);
    result_note(result, "  %-14s%s%s", what, line, count > MOST_SHOWN ? " ..." : "");
}

/* For people a line with the time of each message, in --json a row for each. */
static void add_messages(struct result *result, const struct exchange *exchange, const struct taken *taken,
                         size_t size) {
    int count = exchange->messages, team = exchange->threads;
    if (!program_json()) {
        result_note(result, "%s, %d thread%s, %d x %zu bytes, us of each message:", modes[exchange->mode],
                    team, team == 1 ? "" : "s", count, size / (size_t)count);
        note_times(result, "first exchange", taken->cold_each, count);
        note_times(result, "median", taken->each, count);
        return;
    }
    for (int message = 0; message < count; message++) {
        struct row *row = new_row(result, "message", exchange->mode, team, size, count);
        row_integer(row, "message", message);
        row_figure(row, "latency", "us", LOWER_IS_BETTER, taken->each[message], repetitions - 1);
        row_figure(row, "cold_latency", "us", LOWER_IS_BETTER, taken->cold_each[message], 1);
    }
}

/* One kind of exchange. Returns its time; `reference` is that of the large message from the serial region, 0
 * if this is it, NAN if there was none. */
static double measure(struct result *result, struct exchange *exchange, enum mode which, int team, int count,
                      size_t size, double reference, bool shown) {
    exchange->mode = which;
    exchange->threads = team;
    exchange->messages = count;
    exchange->words = size / sizeof(double) / (size_t)count;
    struct taken taken = take(exchange);
    if (shown) {
        struct row *row = new_row(result, "pingpong", which, team, size, count);
        row_figure(row, "time", "us", LOWER_IS_BETTER, taken.time, repetitions - 1);
        row_figure(row, "cold_time", "us", LOWER_IS_BETTER, taken.cold_time, 1);
        row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, 2.0 * (double)size / taken.time,
                   repetitions - 1);
        if (!isnan(reference))
            row_figure(row, "efficiency", "1", HIGHER_IS_BETTER,
                       reference > 0.0 ? reference / taken.time : 1.0, repetitions - 1);
        if (count > 1 && which != MODE_PARTITIONED)
            add_messages(result, exchange, &taken, size);
    }
    free(taken.each);
    free(taken.cold_each);
    return taken.time;
}

static bool chosen(enum mode which) {
    if (mode != ALL)
        return mode == (int)which;
    return needed_level[which] <= level && (which != MODE_PARTITIONED || partitioned_possible());
}

static void measure_size(struct result *result, struct exchange *exchange, size_t size) {
    bool shown = chosen(MODE_SERIAL);
    double reference = first && !shown ? NAN : measure(result, exchange, MODE_SERIAL, 1, 1, size, 0.0, shown);
    if (shown)
        measure(result, exchange, MODE_SERIAL, 1, (int)messages, size, reference, true);
    for (enum mode which = MODE_ONE; which < MODES; which++)
        for (int index = 0; index < threads.count && chosen(which); index++) {
            int team = (int)threads.values[index];
            if (which == MODE_ONE)
                measure(result, exchange, which, team, 1, size, reference, true);
            measure(result, exchange, which, team, (int)messages, size, reference, true);
        }
}

static void get_steady_broadcasts(int team) {
    struct warm_up warm_up = warm_up_new(most_s);
    int value = 0;
    while (warm_up_next(&warm_up, MPI_COMM_WORLD))
        for (long call = 0; call < warm_up.calls; call++)
            broadcast_once(team, &value);
    warm_ups_count(&warm_ups, &warm_up);
}

/* In a team of `team` threads, or outside of a parallel region if that is 0. */
static void measure_broadcast(struct result *result, int team, long *wrong) {
    double *times = allocate((size_t)repetitions, sizeof *times);
    for (long repetition = 0; repetition < repetitions; repetition++) {
        int expected = (int)repetition + 1000 * team + 1, value = program_rank() == 0 ? expected : 0;
        times[repetition] = broadcast_once(team, &value);
        *wrong += value != expected;
        if (repetition == 0)
            get_steady_broadcasts(team);
    }
    double cold_time = ranks_max(times[0]), time = ranks_max(median_of_warm(times));
    struct row *row =
        new_row(result, "broadcast", team ? MODE_ONE : MODE_SERIAL, team ? team : 1, sizeof(int), 1);
    row_figure(row, "time", "us", LOWER_IS_BETTER, time, repetitions - 1);
    row_figure(row, "cold_time", "us", LOWER_IS_BETTER, cold_time, 1);
    free(times);
}

static void measure_broadcasts(struct result *result, long *wrong) {
    if (chosen(MODE_SERIAL))
        measure_broadcast(result, 0, wrong);
    for (int index = 0; index < threads.count && chosen(MODE_ONE); index++)
        measure_broadcast(result, (int)threads.values[index], wrong);
}

static void refuse_bad_input(void) {
    if (program_ranks() != 2)
        fail_together("2 ranks needed, %d given: start it with mpirun -n 2", program_ranks());
    if (mode != ALL && needed_level[mode] > level)
        fail_together("--mode %s needs thread level %s, --level %s was given", modes[mode],
                      levels[needed_level[mode]], levels[level]);
    if (first && mode == ALL)
        fail_together("--first needs a --mode: one can be the first");
    if (mode == MODE_PARTITIONED && !partitioned_possible())
        fail_together("--mode partitioned: this MPI library has no partitioned communication (MPI 4.0)");
    size_t unit = sizeof(double) * (size_t)messages;
    for (int index = 0; index < bytes.count; index++)
        if (bytes.values[index] % unit)
            fail_together("--bytes: %zu is not a multiple of %zu: %ld messages of 8-byte words",
                          bytes.values[index], unit, messages);
    for (int index = 0; index < threads.count; index++)
        require((int)threads.values[index] <= program_threads(),
                "--threads: %zu wanted, %d available: set OMP_NUM_THREADS", threads.values[index],
                program_threads());
}

/* What the default leaves out, and why. */
static void note_what_is_missing(struct result *result) {
    for (int which = 0; which < MODES && mode == ALL; which++)
        if (needed_level[which] > level)
            result_note(result, "mode %s left out: it needs thread level %s", modes[which],
                        levels[needed_level[which]]);
        else if (which == MODE_PARTITIONED && !partitioned_possible())
            result_note(result, "mode partitioned left out: this MPI library does not have it (MPI 4.0)");
}

int main(int argc, char **argv) {
    threads = sizes_up_to(1, (size_t)omp_get_max_threads());
    program_start(&program, argc, argv);
    if (first)
        threads = (struct sizes){1, {threads.values[threads.count - 1]}};
    refuse_bad_input();
    require_threads((int)sizes_largest(&threads));
    memory_need(2 * sizes_largest(&bytes));
    struct exchange exchange = {.outgoing = memory_take(sizes_largest(&bytes)),
                                .incoming = memory_take(sizes_largest(&bytes))};
    struct result *result = result_new();
    result_model(result,
                 "none: one large message from the serial region is what the others are compared with");
    for (int index = 0; index < bytes.count; index++)
        measure_size(result, &exchange, bytes.values[index]);
    long wrong[] = {exchange.wrong, 0};
    measure_broadcasts(result, &wrong[1]);
    note_what_is_missing(result);
    warm_ups_remark(result, &warm_ups);
    memory_give_back(exchange.outgoing, sizes_largest(&bytes));
    memory_give_back(exchange.incoming, sizes_largest(&bytes));
    MPI_Allreduce(MPI_IN_PLACE, wrong, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    result_check(result, wrong[0] == 0, "messages that did not arrive as sent", (double)wrong[0], 0);
    result_check(result, wrong[1] == 0, "broadcasts that did not arrive", (double)wrong[1], 0);
    return result_finish(result);
}
