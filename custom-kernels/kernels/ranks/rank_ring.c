/* A 2D grid of ranks; data travels around each column by Sendrecv, then all agree by Allreduce. Which ranks
 * share a node decides whether the rings cross the network. */
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "rank_nodes.h"
#include "result.h"
#include "samples.h"
#include "timer.h"
#include "warm_up.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static size_t bytes = 524288;
static long iterations = 5, repetitions = 5, ranks_per_node, maps_used = 2, warm_first = 1;

static const struct argument arguments[] = {
    {"--bytes", ARGUMENT_SIZE, &bytes, 8, 1e9, NULL, "bytes of one ring message"},
    {"--iterations", ARGUMENT_INTEGER, &iterations, 1, 1e6, NULL,
     "rounds of ring and Allreduce in one repetition"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL, "timed repetitions, the maps in turn"},
    {"--ranks-per-node", ARGUMENT_INTEGER, &ranks_per_node, 0, 1e6, NULL,
     "count the ranks' nodes as if N ran on each; 0: the real number"},
    {"--maps", ARGUMENT_INTEGER, &maps_used, 1, 2, NULL, "1: as given only; 2: node-aware too"},
    {"--warm-ups", ARGUMENT_INTEGER, &warm_first, 0, 1, NULL,
     "1: warm up until a repetition takes as long as before; 0: do not"},
    {.name = NULL},
};

static const struct program program = {
    .name = "rank_ring",
    .summary = "ring of Sendrecv along the columns of a 2D grid of ranks, with Allreduce, by rank map",
    .method =
        "Grid P0 x P1 by MPI_Dims_create; in step i = 1..P1-1 rank r sends to (r + i P0) mod P and receives "
        "from any\n"
        "source, and adds the products of its own data and the neighbour's to a result; one Allreduce of "
        "the\n"
        "largest element closes a round. Map 'given': as the launcher numbered the ranks. "
        "Map\n"
        "'node-aware': the ranks of a node, node by node, fill the columns, so that a ring crosses few "
        "nodes.\n"
        "Figures: time of one Sendrecv and of one Allreduce, mean over ranks and calls, median over "
        "repetitions;\n"
        "in_mpi: share of all rounds that a rank spends in these two calls, mean over the ranks, and the\n"
        "least and most of a rank; bytes between nodes in one round, counted exactly. After an IPM example\n"
        "of SciNet (analysis.c).",
    .arguments = arguments,
    .narrows_profile = true,
};

struct ring {
    MPI_Comm comm;
    int rank, ranks, rows, columns;
    double *data, *received, *result;
    size_t elements;
    double expected; /* the largest element of all results */
    long wrong;
};

/* Mean nanoseconds of a Sendrecv and of an Allreduce; nanoseconds in all of them, and in all rounds. */
struct times {
    double sendrecv, allreduce, in_mpi, rounds;
};

enum { LISTED_RANKS = 64 };

/* The rank on the grid: position k of the node-sorted order goes to column k / P1, row by row. */
static int node_aware(const struct nodes *nodes, int rows, int columns, int rank) {
    int place = 0;
    while (nodes->sorted[place] != rank)
        place++;
    return place / columns + (place % columns) * rows;
}

/* result = data * data + data * others: the local work. */
static void begin_result(struct ring *ring) {
    for (size_t index = 0; index < ring->elements; index++)
        ring->result[index] = ring->data[index] * ring->data[index];
}

static void add_products(struct ring *ring, const double *others) {
    for (size_t index = 0; index < ring->elements; index++)
        ring->result[index] += ring->data[index] * others[index];
}

static double largest(const struct ring *ring) {
    double most = ring->result[0];
    for (size_t index = 1; index < ring->elements; index++)
        most = ring->result[index] > most ? ring->result[index] : most;
    return most;
}

/* The last element is one more than the others: of all ranks and elements, the largest result is (r + 1)
 * times the sum of (q + 1) over the ranks q of r's column. */
static double expected_of(const struct ring *ring) {
    double most = 0;
    const int more = ring->elements > 1;
    for (int row = 0; row < ring->rows; row++) {
        double sum = 0;
        for (int column = 0; column < ring->columns; column++)
            sum += row + column * ring->rows + more;
        most = fmax(most, (row + (ring->columns - 1) * ring->rows + more) * sum);
    }
    return most;
}

static void one_step(struct ring *ring, int step, struct times *times) {
    int to = (ring->rank + step * ring->rows) % ring->ranks;
    int from = (ring->rank - step * ring->rows + ring->ranks) % ring->ranks; /* step < columns */
    MPI_Status status;
    uint64_t begin = ticks();
    MPI_Sendrecv(ring->data, (int)ring->elements, MPI_DOUBLE, to, step, ring->received, (int)ring->elements,
                 MPI_DOUBLE, MPI_ANY_SOURCE, step, ring->comm, &status);
    times->sendrecv += ticks_ns(ticks() - begin);
    double expected = from;
    add_products(ring, ring->received);
    ring->wrong += status.MPI_SOURCE != from || ring->received[0] != expected ||
                   ring->received[ring->elements - 1] != expected + (ring->elements > 1);
}

static struct times repetition_of(struct ring *ring) {
    struct times times = {0};
    MPI_Barrier(ring->comm);
    MPI_Pcontrol(1);
    uint64_t start = ticks();
    for (long iteration = 0; iteration < iterations; iteration++) {
        begin_result(ring);
        for (int step = 1; step < ring->columns; step++)
            one_step(ring, step, &times);
        double local = largest(ring) + (double)iteration, most;
        uint64_t begin = ticks();
        MPI_Allreduce(&local, &most, 1, MPI_DOUBLE, MPI_MAX, ring->comm);
        times.allreduce += ticks_ns(ticks() - begin);
        ring->wrong += most != ring->expected + (double)iteration;
    }
    times.rounds = ticks_ns(ticks() - start);
    MPI_Pcontrol(0);
    times.in_mpi = times.sendrecv + times.allreduce;
    times.sendrecv /= (double)iterations * fmax(1, ring->columns - 1);
    times.allreduce /= (double)iterations;
    return times;
}

static struct ring ring_new(int rows, int columns, int position) {
    struct ring ring = {.rows = rows, .columns = columns, .elements = bytes / sizeof(double)};
    MPI_Comm_split(MPI_COMM_WORLD, 0, position, &ring.comm);
    MPI_Comm_rank(ring.comm, &ring.rank);
    MPI_Comm_size(ring.comm, &ring.ranks);
    ring.data = memory_take(ring.elements * sizeof(double));
    ring.received = memory_take(ring.elements * sizeof(double));
    ring.result = memory_take(ring.elements * sizeof(double));
    ring.expected = expected_of(&ring);
    for (size_t index = 0; index < ring.elements; index++)
        ring.data[index] = ring.rank + (index + 1 == ring.elements && index > 0);
    return ring;
}

static void ring_free(struct ring *ring) {
    memory_give_back(ring->data, ring->elements * sizeof(double));
    memory_give_back(ring->received, ring->elements * sizeof(double));
    memory_give_back(ring->result, ring->elements * sizeof(double));
    MPI_Comm_free(&ring->comm);
}

/* Bytes that cross nodes in one round: every rank reports where it is on the grid. */
static double crossing(const struct ring *ring, const struct nodes *nodes) {
    int own = nodes->of[program_rank()], *of = allocate((size_t)ring->ranks, sizeof *of);
    MPI_Allgather(&own, 1, MPI_INT, of, 1, MPI_INT, ring->comm);
    double count = 0;
    for (int rank = 0; rank < ring->ranks; rank++)
        for (int step = 1; step < ring->columns; step++)
            count += of[rank] != of[(rank + step * ring->rows) % ring->ranks];
    free(of);
    return count * (double)(ring->elements * sizeof(double));
}

/* Percent of its time that each rank of `ring` spends in MPI. */
static double *percent_in_mpi(const struct ring *ring, const struct times *each) {
    double sums[2] = {0, 0}, *percent = allocate((size_t)ring->ranks, sizeof *percent);
    for (long index = 0; index < repetitions; index++) {
        sums[0] += each[index].in_mpi;
        sums[1] += each[index].rounds;
    }
    double own = 100.0 * sums[0] / sums[1];
    MPI_Allgather(&own, 1, MPI_DOUBLE, percent, 1, MPI_DOUBLE, ring->comm);
    return percent;
}

static void report_in_mpi(struct result *result, struct row *row, const char *map, const struct ring *ring,
                          const struct times *each) {
    double *percent = percent_in_mpi(ring, each), least = INFINITY, most = 0, sum = 0;
    char list[LISTED_RANKS * 6] = "";
    size_t used = 0;
    for (int rank = 0; rank < ring->ranks; rank++) {
        least = fmin(least, percent[rank]);
        most = fmax(most, percent[rank]);
        sum += percent[rank];
        if (rank < LISTED_RANKS)
            used += (size_t)snprintf(list + used, sizeof list - used, " %.1f", percent[rank]);
    }
    row_figure(row, "in_mpi", "%", LOWER_IS_BETTER, sum / ring->ranks, repetitions);
    row_figure(row, "in_mpi_least", "%", LOWER_IS_BETTER, least, repetitions);
    row_figure(row, "in_mpi_most", "%", LOWER_IS_BETTER, most, repetitions);
    result_remark(result, "map %s: percent of the time in MPI, by rank of the ring:%s%s", map, list,
                  ring->ranks > LISTED_RANKS ? " ..." : "");
    free(percent);
}

static void report(struct result *result, const char *map, struct ring *ring, struct times *each,
                   double crossed) {
    double *sendrecv = allocate((size_t)repetitions, sizeof *sendrecv);
    double *allreduce = allocate((size_t)repetitions, sizeof *allreduce);
    for (long index = 0; index < repetitions; index++) {
        MPI_Allreduce(&each[index].sendrecv, &sendrecv[index], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&each[index].allreduce, &allreduce[index], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    double scale = 1e-3 / ring->ranks;
    struct row *row = result_row(result);
    row_text(row, "map", map);
    row_integer(row, "bytes", (long long)(ring->elements * sizeof(double)));
    row_figure(row, "sendrecv", "us", LOWER_IS_BETTER,
               summarize(sendrecv, (size_t)repetitions).median * scale, repetitions);
    row_figure(row, "allreduce", "us", LOWER_IS_BETTER,
               summarize(allreduce, (size_t)repetitions).median * scale, repetitions);
    report_in_mpi(result, row, map, ring, each);
    row_figure(row, "between_nodes", "bytes", LOWER_IS_BETTER, crossed, 1);
    free(sendrecv);
    free(allreduce);
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    int dims[2] = {0, 0}, rank = program_rank(), ranks = program_ranks();
    if (ranks < 2)
        fail_together("1 rank has no ring: start at least 2");
    MPI_Dims_create(ranks, 2, dims);
    if (dims[1] == 1) { /* a prime number of ranks: one ring of all */
        dims[0] = 1;
        dims[1] = ranks;
    }
    memory_need(6 * bytes);
    struct nodes nodes = nodes_find(ranks, ranks_per_node);
    static const char *const maps[] = {"given", "node-aware"};
    struct ring rings[] = {ring_new(dims[0], dims[1], rank),
                           ring_new(dims[0], dims[1], node_aware(&nodes, dims[0], dims[1], rank))};
    struct times *times[2];
    struct warm_ups warm_ups = {0};
    for (int map = 0; map < maps_used; map++) {
        times[map] = allocate((size_t)repetitions, sizeof **times);
        struct warm_up warm_up = warm_up_new(WARM_UP_S);
        while (warm_first && warm_up_next(&warm_up, MPI_COMM_WORLD))
            for (long call = 0; call < warm_up.calls; call++)
                repetition_of(&rings[map]);
        warm_ups_count(&warm_ups, &warm_up);
    }
    for (long repetition = 0; repetition < repetitions; repetition++)
        for (int map = 0; map < maps_used; map++)
            times[map][repetition] = repetition_of(&rings[map]);
    struct result *result = result_new();
    long wrong = 0;
    for (int map = 0; map < maps_used; map++) {
        report(result, maps[map], &rings[map], times[map], crossing(&rings[map], &nodes));
        wrong += rings[map].wrong;
        free(times[map]);
    }
    for (int map = 0; map < 2; map++)
        ring_free(&rings[map]);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    result_model(result, "the traffic between nodes is exact by counting; the time has no model: link rates "
                         "are not known here");
    result_note(result, "grid of %d x %d ranks on %d node%s: %d rings of %d", dims[0], dims[1], nodes.count,
                nodes.count == 1 ? "" : "s", dims[0], dims[1]);
    warm_ups_remark(result, &warm_ups);
    result_check(result, wrong == 0, "every message and maximum is the expected one", (double)wrong, 0);
    nodes_free(&nodes);
    return result_finish(result);
}
