/* How many ranks, or threads, it takes to use all of the bandwidth between two nodes, and whether messages
 * within the nodes pass at the same time. */
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "rank_nodes.h"
#include "result.h"
#include "samples.h"
#include "saturation_flows.h"
#include "timer.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

enum { BY_RANKS, BY_THREADS };

static const char *const unit_names[] = {"ranks", "threads", NULL};
static int unit = BY_RANKS;
static bool both_ways;
static struct sizes bytes = {3, {8, 65536, 1 << 20}};
static long repetitions = 8, given_windows, ranks_per_node;
static double most_seconds = 1.0;
/* Bytes of a timing, the most windows of one, and the share of the best bandwidth that counts as all of it.
 */
static const double enough_bytes = 64 << 20, all_of_it = 0.95;
enum { MOST_WINDOWS = 256, LEAST_REPETITIONS = 2 };

static const struct argument arguments[] = {
    {"--by", ARGUMENT_CHOICE, &unit, 0, 0, unit_names, "what is increased: ranks or threads"},
    {"--bytes", ARGUMENT_SIZES, &bytes, 1, 1 << 26, NULL, "of a message"},
    {"--both-ways", ARGUMENT_FLAG, &both_ways, 0, 0, NULL, "both nodes send"},
    {"--windows", ARGUMENT_INTEGER, &given_windows, 0, 1e6, NULL,
     "windows of a timing; 0: 64 MiB of messages, 256 at most"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, LEAST_REPETITIONS, 1e6, NULL, "timings of a figure"},
    {"--seconds", ARGUMENT_REAL, &most_seconds, 0, 1e6, NULL,
     "of a figure: one that takes longer has fewer windows, then fewer timings, at least 2 of 1"},
    {"--ranks-per-node", ARGUMENT_INTEGER, &ranks_per_node, 0, 1e6, NULL,
     "count the ranks' nodes as if so many ran on each; 0: as it is"},
    {.name = NULL},
};

static int thread_level(void) {
    return unit == BY_THREADS ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
}

static const struct program program = {
    .name = "saturation",
    .summary = "bandwidth between two nodes by the number of ranks or threads that communicate",
    .method =
        "Node 0 sends to node 1, node 2 to node 3, ...: rank i of a node to rank i of the other. On a "
        "single\n"
        "node its first half of the ranks sends to the second. A window of 16 messages at a time, as in "
        "OSU's\n"
        "osu_mbw_mr; the receiver answers each window. Timings of 1, 2, 4, ... windows before those that "
        "count\n"
        "warm up, and say how many windows --seconds has room for.\n"
        "active      ranks of a node (threads of each rank with --by threads) that send: 1, 2, 4, ..., all\n"
        "bandwidth   of a pair of nodes: bytes of all active ones over the time of the slowest rank, 10^6\n"
        "            bytes/s, both directions together; median\n"
        "needed      the least number of active ones with 95 % of the best bandwidth\n"
        "overlap     all ranks exchange with the other node and with a neighbour on their own node: "
        "(between\n"
        "            + within - both) / min(between, within), times of the slowest rank; several nodes only\n"
        "Checks: every byte of the last window of every timing.\n"
        "Model: none; the best of all numbers of active ones is what the others are compared with.\n"
        "After RRZE: a single rank or thread may not saturate a network interface, and traffic within and\n"
        "between nodes need not overlap.",
    .arguments = arguments,
    .thread_level = thread_level,
};

/* This rank: its place on its node, and its partners on the other node and on its own; -1: none. */
struct seat {
    int place, other, neighbour, seats;
    bool sends;
};

/* Collective. Which ranks talk to which: those of sides 0 and 1, 2 and 3, ..., which are nodes, or the halves
 * of a single one. The last rank of an odd number, and the last node, have nobody to talk to. */
static struct seat find_seat(const struct nodes *nodes) {
    int rank = program_rank(), each = nodes->ranks / nodes->count, position = 0;
    bool alike = nodes->ranks % nodes->count == 0;
    for (int place = 0; place < nodes->ranks; place++) {
        alike = alike && nodes->of[nodes->sorted[place]] == place / each;
        position = nodes->sorted[place] == rank ? place : position;
    }
    if (nodes->ranks < 2)
        fail_together("1 rank has nobody to send to: start at least 2");
    if (!alike)
        fail_together("%d ranks on %d nodes: start as many on each", nodes->ranks, nodes->count);
    int sides = nodes->count;
    if (nodes->count == 1) {
        sides = 2;
        each /= 2;
    }
    int side = position / each, place = position % each;
    struct seat seat = {.place = place, .seats = each, .sends = side % 2 == 0, .other = -1, .neighbour = -1};
    if ((side ^ 1) < sides && side < sides)
        seat.other = nodes->sorted[(side ^ 1) * each + place];
    if (nodes->count > 1 && each % 2 == 0 && seat.other >= 0)
        seat.neighbour = nodes->sorted[side * each + (place ^ 1)];
    return seat;
}

/* What is sent at the same time: by `teams` threads of this rank, each with `together` flows. */
struct traffic {
    struct flow *flows;
    int teams, together;
    bool active;
    size_t size;
};

/* Collective: seconds of the slowest rank. */
static double seconds(const struct traffic *traffic, long windows) {
    int teams = traffic->teams, together = traffic->together;
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
    if (traffic->active && teams == 1)
        flows_exchange(traffic->flows, together, traffic->size, windows);
    else if (traffic->active)
#pragma omp parallel num_threads(teams)
        flows_exchange(&traffic->flows[omp_get_thread_num() * together], together, traffic->size, windows);
    double slowest = ranks_max(ticks_s(ticks() - begin));
    for (int index = 0; traffic->active && index < teams * together; index++)
        flow_check(&traffic->flows[index], traffic->size);
    return slowest;
}

static long windows_wanted(size_t size) {
    if (given_windows > 0)
        return given_windows;
    return (long)fmax(1, fmin(MOST_WINDOWS, enough_bytes / (double)(WINDOW * size)));
}

/* Seconds of a window: the median of `timings`. */
struct timing {
    double window;
    long timings;
};

/* All figures, and those that --seconds cut. */
static struct {
    long all, cut;
} figures;

/* Collective: as many windows, then as many timings as wanted, or as --seconds has room for. */
static struct timing measure(const struct traffic *traffic) {
    for (int index = 0; index < traffic->teams * traffic->together; index++)
        flow_fill(&traffic->flows[index], program_rank(), traffic->size);
    long wanted = windows_wanted(traffic->size), windows = 1;
    seconds(traffic, windows);
    double taken = seconds(traffic, windows), share = most_seconds / (double)repetitions;
    while (windows < wanted && 2.0 * taken <= share) {
        windows = 2 * windows < wanted ? 2 * windows : wanted;
        taken = seconds(traffic, windows);
    }
    long timings = (long)fmin((double)repetitions, fmax(LEAST_REPETITIONS, most_seconds / taken));
    double *samples = allocate((size_t)timings, sizeof *samples);
    for (long timing = 0; timing < timings; timing++)
        samples[timing] = seconds(traffic, windows);
    double median = summarize(samples, (size_t)timings).median;
    free(samples);
    figures.all++;
    figures.cut += windows < wanted || timings < repetitions;
    return (struct timing){median / (double)windows, timings};
}

/* The bandwidth of each number of active ranks or threads, for one size. */
struct curve {
    struct sizes counts;
    double bandwidths[MOST_SIZES], best;
    long timings[MOST_SIZES];
};

static struct curve sweep(const struct seat *seat, struct flow *flows, size_t size) {
    int most = unit == BY_RANKS ? seat->seats : program_threads();
    struct curve curve = {.counts = sizes_up_to(1, (size_t)most)};
    for (int step = 0; step < curve.counts.count; step++) {
        int count = (int)curve.counts.values[step], teams = unit == BY_RANKS ? 1 : count;
        double senders = unit == BY_RANKS ? count : (double)count * seat->seats;
        bool active = seat->other >= 0 && (unit == BY_THREADS || seat->place < count);
        double moved = senders * (double)(WINDOW * size) * (both_ways ? 2 : 1);
        struct timing timing = measure(&(struct traffic){flows, teams, 1, active, size});
        curve.bandwidths[step] = moved / timing.window / 1e6;
        curve.timings[step] = timing.timings;
        curve.best = fmax(curve.best, curve.bandwidths[step]);
    }
    return curve;
}

static struct row *new_row(struct result *result, const char *by, size_t size) {
    struct row *row = result_row(result);
    row_text(row, "by", by);
    row_integer(row, "bytes", (long long)size);
    return row;
}

static void report_curve(struct result *result, const struct curve *curve, size_t size) {
    for (int step = 0; step < curve->counts.count; step++) {
        struct row *row = new_row(result, unit_names[unit], size);
        row_integer(row, "active", (long long)curve->counts.values[step]);
        row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, curve->bandwidths[step], curve->timings[step]);
    }
}

static void report_needed(struct result *result, const struct curve *curve, size_t size) {
    int needed = 0, best = 0;
    while (curve->bandwidths[best] < curve->best)
        best++;
    while (curve->bandwidths[needed] < all_of_it * curve->best)
        needed++;
    struct row *row = new_row(result, unit_names[unit], size);
    row_figure(row, "one", "MB/s", HIGHER_IS_BETTER, curve->bandwidths[0], curve->timings[0]);
    row_figure(row, "best", "MB/s", HIGHER_IS_BETTER, curve->best, curve->timings[best]);
    row_figure(row, "needed", "1", LOWER_IS_BETTER, (double)curve->counts.values[needed],
               curve->timings[needed]);
}

static void measure_curves(struct result *result, const struct seat *seat, struct flow *flows) {
    struct curve *curves = allocate((size_t)bytes.count, sizeof *curves);
    for (int index = 0; index < bytes.count; index++)
        curves[index] = sweep(seat, flows, bytes.values[index]);
    for (int index = 0; index < bytes.count; index++)
        report_curve(result, &curves[index], bytes.values[index]);
    for (int index = 0; index < bytes.count; index++)
        report_needed(result, &curves[index], bytes.values[index]);
    free(curves);
}

/* All ranks at once: with the other node, with a neighbour on their own node, with both at the same time. */
static void overlap(struct result *result, struct flow *flows, bool active, size_t size) {
    for (int index = 0; index < 2; index++)
        flows[index].sends = flows[index].receives = true;
    struct timing between = measure(&(struct traffic){&flows[0], 1, 1, active, size});
    struct timing within = measure(&(struct traffic){&flows[1], 1, 1, active, size});
    struct timing both = measure(&(struct traffic){flows, 1, 2, active, size});
    struct row *row = new_row(result, "all", size);
    row_figure(row, "between", "us", LOWER_IS_BETTER, between.window * 1e6, between.timings);
    row_figure(row, "within", "us", LOWER_IS_BETTER, within.window * 1e6, within.timings);
    row_figure(row, "both", "us", LOWER_IS_BETTER, both.window * 1e6, both.timings);
    double share = (between.window + within.window - both.window) / fmin(between.window, within.window);
    row_figure(row, "overlap", "%", HIGHER_IS_BETTER, 100.0 * fmin(1.0, fmax(0.0, share)), both.timings);
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    struct nodes nodes = nodes_find(program_ranks(), ranks_per_node);
    struct seat seat = find_seat(&nodes);
    int teams = unit == BY_THREADS ? (int)ranks_max(program_threads()) : 1, slots = teams > 2 ? teams : 2;
    require(teams == program_threads() || unit == BY_RANKS, "the ranks have different numbers of threads");
    require_threads(teams);
    size_t room = (WINDOW + 1) * sizes_largest(&bytes);
    memory_need((size_t)slots * room);
    unsigned char *memory = memory_take((size_t)slots * room);
    struct flow *flows = allocate((size_t)slots, sizeof *flows);
    for (int index = 0; index < slots; index++)
        flows[index] = (struct flow){.partner = seat.other,
                                     .tag = 2 * index,
                                     .sends = seat.sends || both_ways,
                                     .receives = !seat.sends || both_ways,
                                     .out = memory + (size_t)index * room,
                                     .in = memory + (size_t)index * room + sizes_largest(&bytes)};
    struct result *result = result_new();
    measure_curves(result, &seat, flows);
    flows[1].partner = seat.neighbour;
    bool neighbours = unit == BY_RANKS && nodes.count > 1 && seat.seats % 2 == 0;
    for (int index = 0; index < bytes.count && neighbours; index++)
        overlap(result, flows, seat.other >= 0, bytes.values[index]);
    if (!neighbours && unit == BY_RANKS)
        result_note(result,
                    "no overlap of traffic within and between nodes: it takes several nodes with an even "
                    "number of ranks on each");
    long wrong = 0;
    for (int index = 0; index < slots; index++)
        wrong += flows[index].wrong;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    result_model(result, "none: the best of all numbers of active ones is what the others are compared with");
    result_note(result, "%d node%s, %d pair%s of ranks on each pair of them%s", nodes.count,
                nodes.count == 1 ? "" : "s", seat.seats, seat.seats == 1 ? "" : "s",
                nodes.count == 1 ? " (its two halves)" : "");
    if (figures.cut)
        result_remark(result,
                      "%ld of %ld figures have fewer windows or timings than wanted: %g s of each were over "
                      "(--seconds)",
                      figures.cut, figures.all, most_seconds);
    result_check(result, wrong == 0, "messages that did not arrive as sent", (double)wrong, 0);
    memory_give_back(memory, (size_t)slots * room);
    free(flows);
    nodes_free(&nodes);
    return result_finish(result);
}
