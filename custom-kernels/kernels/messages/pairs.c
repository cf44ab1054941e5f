/* Every pair of ranks in one launch: latency and bandwidth of a ping-pong, by the distance of the two. */
#include "pairs.h"

#include "fail_together.h"
#include "first_touch.h"
#include "pairs_plan.h"
#include "program.h"

#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { SERIAL, TOURNAMENT };
enum { MOST_PLANNED_ROWS = 128 };

static const char *const modes[] = {"serial", "tournament", NULL};
static int mode = TOURNAMENT;
static struct exchange exchange = {.latency_bytes = 8, .bandwidth_bytes = 4 << 20, .batches = 7};
static long rows = 100000, plan = 0;
static double seconds = 120.0, most_warm_up = WARM_UP_S;

static const struct argument arguments[] = {
    {"--mode", ARGUMENT_CHOICE, &mode, 0, 0, modes, "one pair at a time, or disjoint pairs at the same time"},
    {"--latency-bytes", ARGUMENT_SIZE, &exchange.latency_bytes, 1, INT_MAX, NULL, "small message"},
    {"--bandwidth-bytes", ARGUMENT_SIZE, &exchange.bandwidth_bytes, 1, INT_MAX, NULL, "large message"},
    {"--latency-trips", ARGUMENT_INTEGER, &exchange.latency_repetitions, 0, 1e7, NULL,
     "round trips of a batch, small; 0: as many as take 1 ms"},
    {"--bandwidth-trips", ARGUMENT_INTEGER, &exchange.bandwidth_repetitions, 0, 1e7, NULL,
     "round trips of a batch, large; 0: as many as take 1 ms, at least 2"},
    {"--batches", ARGUMENT_INTEGER, &exchange.batches, 1, 1e5, NULL, "timed batches; their median counts"},
    {"--seconds", ARGUMENT_REAL, &seconds, 0, 1e6, NULL, "of all warm-ups together at most"},
    {"--warm-up", ARGUMENT_REAL, &most_warm_up, 0, 1e6, NULL, "s of the warm-up of a pair and size at most"},
    {"--rows", ARGUMENT_INTEGER, &rows, 0, 1e9, NULL, "write a row for each pair if there are no more"},
    {"--plan", ARGUMENT_INTEGER, &plan, 0, 20000, NULL,
     "count out the tournament of that many ranks, measure nothing; 0: measure"},
    {.name = NULL},
};

static const struct program program = {
    .name = "pairs",
    .summary = "latency and bandwidth of every pair of ranks",
    .method =
        "Each pair plays ping-pong with MPI_Send and MPI_Recv. latency: half a round trip of the small\n"
        "message; bandwidth: bytes of the large message over half its round trip, in 10^6 bytes/s; both as\n"
        "IMB-MPI1 PingPong defines them. The clock is read only around a batch of round trips; the median "
        "of\n"
        "the batches counts. Each pair and size is warmed up until a round trip takes as long as before (a\n"
        "remark says where that was not reached).\n"
        "serial      one pair at a time, the other ranks wait in a barrier: N(N-1)/2 steps\n"
        "tournament  N-1 rounds (N if odd) of N/2 disjoint pairs at once, by the circle method: what pairs\n"
        "            get under load\n"
        "class: the smallest object that both cores share, by plumb-bind's own rule (pair:l3, pair:numa, "
        "...,\n"
        "pair:node); 'unbound' where a rank may run on several cores. Give each rank a core (placement "
        "core).\n"
        "worst_*: the slowest pair of the class. A hint names pairs slower than their class's median by a\n"
        "tenth and five robust standard deviations; 'plumb outliers' decides from several records.\n"
        "Checks: the last message of every ping-pong, byte by byte, on both sides; no pair is missing.\n"
        "Model: none; the other pairs of its class are what a pair is compared with.",
    .arguments = arguments,
};

/* This rank meets `partner` (NOBODY: it waits); both sizes are measured by all pairs at the same time. */
static void meet(int partner, struct meeting *own, struct course *course) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (partner != NOBODY)
        own[partner].small =
            ping_pong(&exchange, partner, exchange.latency_bytes, exchange.latency_repetitions, course);
    MPI_Barrier(MPI_COMM_WORLD);
    if (partner != NOBODY)
        own[partner].large =
            ping_pong(&exchange, partner, exchange.bandwidth_bytes, exchange.bandwidth_repetitions, course);
}

static void meet_in_turn(struct meeting *own, struct course *course) {
    int rank = program_rank();
    for (int first = 0; first < program_ranks(); first++)
        for (int second = first + 1; second < program_ranks(); second++)
            meet(rank == first ? second : rank == second ? first : NOBODY, own, course);
}

static void meet_in_rounds(struct meeting *own, struct course *course) {
    for (int round = 0; round < tournament_rounds(program_ranks()); round++)
        meet(tournament_partner(program_ranks(), round, program_rank()), own, course);
}

/* All meetings on rank 0, NULL elsewhere. */
static struct meeting *measure(struct course *course) {
    size_t ranks = (size_t)program_ranks();
    double steps = mode == SERIAL ? 0.5 * (double)(ranks * (ranks - 1)) : (double)ranks;
    exchange.warm_up_s = fmin(most_warm_up, seconds / (2.0 * steps));
    struct meeting *own = allocate(ranks, sizeof *own), *all = NULL;
    if (program_rank() == 0)
        all = allocate(ranks * ranks, sizeof *all);
    if (mode == SERIAL)
        meet_in_turn(own, course);
    else
        meet_in_rounds(own, course);
    int count = 2 * program_ranks();
    MPI_Gather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(own);
    return all;
}

/* On all ranks what all of them found: of the unsteady warm-ups the one that changed most. */
static void sum_up(struct course *course) {
    struct {
        double change;
        int rank;
    } worst = {fabs(course->warm_ups.change), program_rank()};
    long counts[] = {course->wrong, course->warm_ups.all, course->warm_ups.unsteady};
    MPI_Allreduce(MPI_IN_PLACE, counts, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(course, sizeof *course, MPI_BYTE, worst.rank, MPI_COMM_WORLD);
    course->wrong = counts[0];
    course->warm_ups.all = counts[1];
    course->warm_ups.unsteady = counts[2];
}

/* The number of pairs that lack one of the two times. */
static long missing(const struct meeting *all, size_t ranks) {
    long count = 0;
    for (size_t first = 0; first < ranks; first++)
        for (size_t second = first + 1; second < ranks; second++)
            count += !(all[first * ranks + second].small > 0.0 && all[first * ranks + second].large > 0.0);
    return count;
}

static int measure_all(void) {
    size_t ranks = (size_t)program_ranks();
    if (ranks < 2)
        fail_together("2 ranks needed, 1 given: start it with mpirun -n 2");
    size_t bytes =
        exchange.latency_bytes > exchange.bandwidth_bytes ? exchange.latency_bytes : exchange.bandwidth_bytes;
    memory_need(2 * bytes + (program_rank() == 0 ? ranks * ranks * sizeof(struct meeting) : 0));
    exchange.outgoing = memory_take(bytes);
    exchange.incoming = memory_take(bytes);
    struct place *places = places_collect();
    long absent = 0;
    struct course course = {0};
    struct meeting *all = measure(&course);
    sum_up(&course);
    struct result *result = result_new();
    result_model(result, "none: the other pairs of its class are what a pair is compared with");
    if (all) {
        struct matrix matrix = {(int)ranks, modes[mode], all, places};
        show_pairs(result, &matrix, &exchange, rows);
        absent = missing(all, ranks);
    }
    warm_ups_remark(result, &course.warm_ups);
    result_check(result, course.wrong == 0, "ping-pongs whose message did not arrive as sent",
                 (double)course.wrong, 0);
    result_check(result, absent == 0, "pairs without a time", (double)absent, 0);
    memory_give_back(exchange.outgoing, bytes);
    memory_give_back(exchange.incoming, bytes);
    free(all);
    free(places);
    return result_finish(result);
}

static void add_round_rows(struct result *result, int ranks) {
    for (int round = 0; round < tournament_rounds(ranks); round++)
        for (int rank = 0; rank < ranks; rank++) {
            int partner = tournament_partner(ranks, round, rank);
            if (partner <= rank)
                continue;
            struct row *row = result_row(result);
            row_integer(row, "first", rank);
            row_integer(row, "second", partner);
            row_figure(row, "round", "1", LOWER_IS_BETTER, round, 1);
        }
}

static int count_out(void) {
    struct plan_count count = count_tournament((int)plan);
    struct result *result = result_new();
    result_model(result,
                 "N-1 rounds of N/2 pairs (N rounds if N is odd); each rank computes its partner of a "
                 "round in a constant time");
    if (plan <= MOST_PLANNED_ROWS)
        add_round_rows(result, (int)plan);
    struct row *row = result_row(result);
    row_integer(row, "ranks", plan);
    row_figure(row, "rounds", "1", LOWER_IS_BETTER, (double)count.rounds, 1);
    row_figure(row, "meetings", "1", LOWER_IS_BETTER, (double)count.meetings, 1);
    row_figure(row, "byes", "1", LOWER_IS_BETTER, (double)count.byes, 1);
    row_figure(row, "operations", "1", LOWER_IS_BETTER, (double)count.operations, 1);
    result_check(result, count.faults == 0, "pairs that do not meet exactly once", (double)count.faults, 0);
    return result_finish(result);
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    if (plan == 1)
        fail_together("--plan: 1 rank has nobody to meet: at least 2");
    return plan ? count_out() : measure_all();
}
