/* A plain loop of calls, as a program has it: no code of the kernels, data that stay the same, buffers that
 * begin at a cache line as the kernel's do (docs/kernels/collective.md says what it costs when they do not).
 * plain_loop BYTES CALLS LOOPS, BYTES a multiple of 64: a line "OPERATION US" each, the median over LOOPS of
 * the slowest rank's time of a call.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64 };

static int count, ranks;
static float *give, *get;
static int *counts, *places;

static void bcast(void) {
    MPI_Bcast(get, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void reduce(void) {
    MPI_Reduce(give, get, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void allreduce(void) {
    MPI_Allreduce(give, get, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void scan(void) {
    MPI_Scan(give, get, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void gather(void) {
    MPI_Gather(give, count, MPI_FLOAT, get, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void gatherv(void) {
    MPI_Gatherv(give, count, MPI_FLOAT, get, counts, places, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void scatter(void) {
    MPI_Scatter(give, count, MPI_FLOAT, get, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void scatterv(void) {
    MPI_Scatterv(give, counts, places, MPI_FLOAT, get, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void allgather(void) {
    MPI_Allgather(give, count, MPI_FLOAT, get, count, MPI_FLOAT, MPI_COMM_WORLD);
}
static void allgatherv(void) {
    MPI_Allgatherv(give, count, MPI_FLOAT, get, counts, places, MPI_FLOAT, MPI_COMM_WORLD);
}
static void alltoall(void) {
    MPI_Alltoall(give, count, MPI_FLOAT, get, count, MPI_FLOAT, MPI_COMM_WORLD);
}
static void alltoallv(void) {
    MPI_Alltoallv(give, counts, places, MPI_FLOAT, get, counts, places, MPI_FLOAT, MPI_COMM_WORLD);
}
static void reduce_scatter(void) {
    MPI_Reduce_scatter(give, get, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce_scatter_block(void) {
    MPI_Reduce_scatter_block(give, get, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*call)(void);
} operations[] = {
    {"bcast", bcast},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"scan", scan},
    {"gather", gather},
    {"gatherv", gatherv},
    {"scatter", scatter},
    {"scatterv", scatterv},
    {"allgather", allgather},
    {"allgatherv", allgatherv},
    {"alltoall", alltoall},
    {"alltoallv", alltoallv},
    {"reduce_scatter", reduce_scatter},
    {"reduce_scatter_block", reduce_scatter_block},
};

static int by_value(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, bytes = atoi(argv[1]), calls = atoi(argv[2]), loops = atoi(argv[3]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    count = bytes / 4;
    give = aligned_alloc(CACHE_LINE, (size_t)ranks * (size_t)bytes);
    get = aligned_alloc(CACHE_LINE, (size_t)ranks * (size_t)bytes);
    memset(give, 1, (size_t)ranks * (size_t)bytes);
    memset(get, 1, (size_t)ranks * (size_t)bytes);
    counts = malloc((size_t)ranks * sizeof *counts);
    places = malloc((size_t)ranks * sizeof *places);
    for (int other = 0; other < ranks; other++) {
        counts[other] = count;
        places[other] = other * count;
    }
    double *times = malloc((size_t)loops * sizeof *times);
    for (size_t which = 0; which < sizeof operations / sizeof *operations; which++) {
        for (int loop = -1; loop < loops; loop++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            for (int number = 0; number < calls; number++)
                operations[which].call();
            double own = 1e6 * (MPI_Wtime() - begin) / calls;
            MPI_Allreduce(&own, &times[loop < 0 ? 0 : loop], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        }
        qsort(times, (size_t)loops, sizeof *times, by_value);
        if (rank == 0)
            printf("%s %.4f\n", operations[which].name, times[loops / 2]);
    }
    MPI_Finalize();
    return 0;
}
