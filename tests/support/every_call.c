/* Makes each call that the profile wraps, a known number of times, and prints what it made: a line "CALL
 * COUNT BYTES" of rank 0 for each; every rank makes the same. For two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 3, COUNT = 4, BYTES = COUNT * sizeof(double) };

static struct {
    const char *name;
    long count, bytes;
} made[200];
static int rank, peer;
static double out[64], in[64];
static int counts[2] = {COUNT, COUNT}, displacements[2] = {0, COUNT};
static MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
static int byte_displacements[2] = {0, BYTES};
static MPI_Comm comm;

static void note(const char *name, long bytes) {
    int at = 0;
    while (made[at].name != NULL && strcmp(made[at].name, name) != 0)
        at++;
    made[at].name = name;
    made[at].count++;
    made[at].bytes += bytes;
}

#define DO(Name, bytes, ...)                                                                                 \
    do {                                                                                                     \
        if (MPI_##Name(__VA_ARGS__) != MPI_SUCCESS)                                                          \
            exit(3);                                                                                         \
        note(#Name, bytes);                                                                                  \
    } while (0)
#define WAIT(request) DO(Wait, 0, &request, MPI_STATUS_IGNORE)
#define RUN(Name, bytes, ...)                                                                                \
    do {                                                                                                     \
        MPI_Request own;                                                                                     \
        DO(Name, bytes, __VA_ARGS__, &own);                                                                  \
        WAIT(own);                                                                                           \
    } while (0)
#define PERSIST(Name, bytes, ...)                                                                            \
    do {                                                                                                     \
        MPI_Request own;                                                                                     \
        DO(Name, bytes, __VA_ARGS__, &own);                                                                  \
        DO(Start, 0, &own);                                                                                  \
        WAIT(own);                                                                                           \
        DO(Request_free, 0, &own);                                                                           \
    } while (0)
#if MPI_VERSION >= 4
#define COLLECTIVE(Name, name, bytes, ...)                                                                   \
    DO(Name, bytes, __VA_ARGS__, comm);                                                                      \
    RUN(I##name, bytes, __VA_ARGS__, comm);                                                                  \
    PERSIST(Name##_init, bytes, __VA_ARGS__, comm, MPI_INFO_NULL)
#else
#define COLLECTIVE(Name, name, bytes, ...)                                                                   \
    DO(Name, bytes, __VA_ARGS__, comm);                                                                      \
    RUN(I##name, bytes, __VA_ARGS__, comm)
#endif
#define SEND(Name, name)                                                                                     \
    do {                                                                                                     \
        MPI_Request other;                                                                                   \
        DO(Irecv, BYTES, in, COUNT, MPI_DOUBLE, peer, 0, comm, &other);                                      \
        DO(Name, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, comm);                                              \
        WAIT(other);                                                                                         \
        DO(Irecv, BYTES, in, COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, 0, comm, &other);                            \
        RUN(I##name, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, comm);                                          \
        WAIT(other);                                                                                         \
        DO(Irecv, BYTES, in, COUNT, MPI_DOUBLE, peer, 0, comm, &other);                                      \
        PERSIST(Name##_init, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, comm);                                  \
        WAIT(other);                                                                                         \
    } while (0)

static void point_to_point(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag, index, done, indices[2];
    MPI_Message message;
    DO(Irecv, BYTES, in, COUNT, MPI_DOUBLE, peer, 0, comm, requests);
    MPI_Barrier(comm); /* the receive is there before the ready sends */
    note("Barrier", 0);
    DO(Rsend, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, comm);
    WAIT(requests[0]);
    SEND(Send, send);
    SEND(Bsend, bsend);
    SEND(Ssend, ssend);
    DO(Sendrecv, BYTES, out, COUNT, MPI_DOUBLE, peer, 1, in, COUNT, MPI_DOUBLE, peer, 1, comm,
       MPI_STATUS_IGNORE);
    DO(Sendrecv, BYTES, out, COUNT, MPI_DOUBLE, peer, 1, in, 2 * COUNT, MPI_DOUBLE, peer, 1, comm, statuses);
    DO(Sendrecv, 0, out, 0, MPI_DOUBLE, MPI_PROC_NULL, 1, in, 0, MPI_DOUBLE, MPI_PROC_NULL, 1, comm,
       statuses);
    DO(Sendrecv_replace, BYTES, in, COUNT, MPI_DOUBLE, peer, 1, peer, 1, comm, statuses);
    DO(Send, BYTES, out, COUNT, MPI_DOUBLE, peer, 2, comm);
    DO(Probe, 0, peer, 2, comm, statuses);
    do
        DO(Iprobe, 0, peer, 2, comm, &flag, statuses);
    while (!flag);
    DO(Recv, BYTES, in, COUNT, MPI_DOUBLE, peer, 2, comm, MPI_STATUS_IGNORE);
    DO(Send, BYTES, out, COUNT, MPI_DOUBLE, peer, 3, comm);
    DO(Mprobe, 0, peer, 3, comm, &message, statuses);
    DO(Mrecv, BYTES, in, COUNT, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
#define BOTH()                                                                                               \
    DO(Irecv, BYTES, in, COUNT, MPI_DOUBLE, peer, 4, comm, &requests[0]);                                    \
    DO(Isend, BYTES, out, COUNT, MPI_DOUBLE, peer, 4, comm, &requests[1])
    BOTH();
    DO(Waitall, 0, 2, requests, MPI_STATUSES_IGNORE);
    BOTH();
    for (int one = 0; one < 2; one++)
        DO(Waitany, 0, 2, requests, &index, statuses);
    BOTH();
    for (int all = 0; all < 2; all += done)
        DO(Waitsome, 0, 2, requests, &done, indices, statuses);
    BOTH();
    for (int one = 0; one < 2; one++)
        do
            DO(Test, 0, &requests[one], &flag, statuses);
        while (!flag);
    BOTH();
    do
        DO(Testall, 0, 2, requests, &flag, MPI_STATUSES_IGNORE);
    while (!flag);
    BOTH();
    for (int one = 0; one < 2; one++)
        do
            DO(Testany, 0, 2, requests, &index, &flag, statuses);
        while (!flag);
    BOTH();
    for (int all = 0; all < 2; all += done)
        DO(Testsome, 0, 2, requests, &done, indices, statuses);
    DO(Recv_init, BYTES, in, COUNT, MPI_DOUBLE, peer, 5, comm, &requests[0]);
    DO(Send_init, BYTES, out, COUNT, MPI_DOUBLE, peer, 5, comm, &requests[1]);
    for (int round = 0; round < 2; round++) {
        DO(Startall, 0, 2, requests);
        DO(Waitall, 0, 2, requests, statuses);
    }
    DO(Request_free, 0, &requests[0]);
    DO(Request_free, 0, &requests[1]);
}

static void collectives(void) {
    const int all = 2 * BYTES;
    DO(Barrier, 0, comm);
    RUN(Ibarrier, 0, comm);
#if MPI_VERSION >= 4
    PERSIST(Barrier_init, 0, comm, MPI_INFO_NULL);
#endif
    COLLECTIVE(Bcast, bcast, BYTES, out, COUNT, MPI_DOUBLE, 0);
    COLLECTIVE(Reduce, reduce, BYTES, out, in, COUNT, MPI_DOUBLE, MPI_SUM, 0);
    COLLECTIVE(Allreduce, allreduce, BYTES, out, in, COUNT, MPI_DOUBLE, MPI_SUM);
    DO(Allreduce, BYTES, MPI_IN_PLACE, in, COUNT, MPI_DOUBLE, MPI_SUM, comm);
    COLLECTIVE(Scan, scan, BYTES, out, in, COUNT, MPI_DOUBLE, MPI_SUM);
    COLLECTIVE(Exscan, exscan, BYTES, out, in, COUNT, MPI_DOUBLE, MPI_SUM);
    COLLECTIVE(Reduce_scatter, reduce_scatter, all, out, in, counts, MPI_DOUBLE, MPI_SUM);
    COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, BYTES, out, in, COUNT, MPI_DOUBLE, MPI_SUM);
    COLLECTIVE(Gather, gather, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 0);
    COLLECTIVE(Gatherv, gatherv, BYTES, out, COUNT, MPI_DOUBLE, in, counts, displacements, MPI_DOUBLE, 0);
    COLLECTIVE(Scatter, scatter, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 0);
    COLLECTIVE(Scatterv, scatterv, BYTES, out, counts, displacements, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 0);
    COLLECTIVE(Allgather, allgather, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE);
    DO(Allgather, BYTES, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, COUNT, MPI_DOUBLE, comm);
    COLLECTIVE(Allgatherv, allgatherv, BYTES, out, COUNT, MPI_DOUBLE, in, counts, displacements, MPI_DOUBLE);
    DO(Allgatherv, BYTES, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, displacements, MPI_DOUBLE, comm);
    COLLECTIVE(Alltoall, alltoall, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE);
    COLLECTIVE(Alltoallv, alltoallv, all, out, counts, displacements, MPI_DOUBLE, in, counts, displacements,
               MPI_DOUBLE);
    COLLECTIVE(Alltoallw, alltoallw, all, out, counts, byte_displacements, types, in, counts,
               byte_displacements, types);
}

static void neighbours(void) {
    MPI_Comm world = comm, ring;
    int size = 2, periodic = 1;
    MPI_Aint far[2] = {0, BYTES};
    DO(Cart_create, 0, comm, 1, &size, &periodic, 0, &ring);
    comm = ring;
    COLLECTIVE(Neighbor_allgather, neighbor_allgather, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE);
    COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv, BYTES, out, COUNT, MPI_DOUBLE, in, counts,
               displacements, MPI_DOUBLE);
    COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE);
    COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, 2 * BYTES, out, counts, displacements, MPI_DOUBLE, in,
               counts, displacements, MPI_DOUBLE);
    COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw, 2 * BYTES, out, counts, far, types, in, counts, far,
               types);
    comm = world;
    DO(Comm_free, 0, &ring);
    DO(Dist_graph_create_adjacent, 0, comm, 1, &peer, MPI_UNWEIGHTED, 1, &peer, MPI_UNWEIGHTED, MPI_INFO_NULL,
       0, &ring);
    DO(Neighbor_alltoallv, BYTES, out, counts, displacements, MPI_DOUBLE, in, counts, displacements,
       MPI_DOUBLE, ring);
    DO(Comm_free, 0, &ring);
}

static void one_sided(void) {
    MPI_Win window, other;
    double room[64] = {0}, *own;
    MPI_Group group, partner;
    DO(Win_create, 0, room, sizeof room, sizeof(double), MPI_INFO_NULL, comm, &window);
    DO(Win_fence, 0, 0, window);
    DO(Put, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE, window);
    DO(Win_fence, 0, 0, window);
    DO(Get, BYTES, in, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE, window);
    DO(Win_fence, 0, 0, window);
    DO(Accumulate, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE, MPI_SUM, window);
    DO(Win_fence, 0, 0, window);
    DO(Win_lock, 0, MPI_LOCK_SHARED, peer, 0, window);
    DO(Get_accumulate, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE,
       MPI_SUM, window);
    DO(Win_flush, 0, peer, window);
    DO(Fetch_and_op, 8, out, in, MPI_DOUBLE, peer, 0, MPI_SUM, window);
    DO(Win_unlock, 0, peer, window);
    DO(Win_lock_all, 0, 0, window);
    DO(Compare_and_swap, 4, out, in, in + 1, MPI_INT, peer, 0, window);
    DO(Win_flush_all, 0, window);
#ifndef I_MPI_VERSION /* 2021.18.1 crashes in the wait for a request of one-sided calls between two ranks of \
                         a node */
    RUN(Rput, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE, window);
    RUN(Rget, BYTES, in, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE, window);
    RUN(Raccumulate, BYTES, out, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE, MPI_SUM, window);
    RUN(Rget_accumulate, BYTES, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, peer, 0, COUNT, MPI_DOUBLE,
        MPI_SUM, window);
#endif
    DO(Win_unlock_all, 0, window);
    DO(Barrier, 0, comm);
    MPI_Comm_group(comm, &group);
    MPI_Group_incl(group, 1, &peer, &partner);
    DO(Win_post, 0, partner, 0, window);
    DO(Win_start, 0, partner, 0, window);
    DO(Win_complete, 0, window);
    DO(Win_wait, 0, window);
    MPI_Group_free(&partner);
    MPI_Group_free(&group);
    DO(Win_free, 0, &window);
    DO(Win_allocate, 0, BYTES, 8, MPI_INFO_NULL, comm, &own, &other);
    DO(Win_free, 0, &other);
    DO(Win_allocate_shared, 0, BYTES, 8, MPI_INFO_NULL, comm, &own, &other);
    DO(Win_free, 0, &other);
}

static void others(void) {
    MPI_Comm made_here;
    MPI_Group group;
    MPI_Datatype pair;
    int number;
    DO(Comm_rank, 0, comm, &number);
    DO(Comm_size, 0, comm, &number);
    DO(Comm_dup, 0, comm, &made_here);
    DO(Comm_free, 0, &made_here);
    DO(Comm_split, 0, comm, 0, -rank, &made_here);
    DO(Send, BYTES, out, COUNT, MPI_DOUBLE, rank, 6, made_here); /* the order is reversed there */
    DO(Recv, BYTES, in, COUNT, MPI_DOUBLE, rank, 6, made_here, MPI_STATUS_IGNORE);
    DO(Comm_disconnect, 0, &made_here);
    DO(Comm_split_type, 0, comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made_here);
    DO(Comm_free, 0, &made_here);
    MPI_Comm_group(comm, &group);
    DO(Comm_create, 0, comm, group, &made_here);
    MPI_Group_free(&group);
    DO(Comm_free, 0, &made_here);
    for (int size = 2; size < 4; size++) { /* one handle may stand for both */
        MPI_Type_contiguous(size, MPI_DOUBLE, &pair);
        MPI_Type_commit(&pair);
        DO(Sendrecv, 8 * size, out, 1, pair, peer, 7, in, 1, pair, peer, 7, comm, MPI_STATUS_IGNORE);
        DO(Type_free, 0, &pair);
    }
#if MPI_VERSION >= 4
    MPI_Sendrecv_c(out, COUNT, MPI_DOUBLE, peer, 8, in, COUNT, MPI_DOUBLE, peer, 8, comm, MPI_STATUS_IGNORE);
    note("Sendrecv", BYTES);
    MPI_Count large[2] = {COUNT, COUNT};
    MPI_Aint places[2] = {0, COUNT};
    MPI_Alltoallv_c(out, large, places, MPI_DOUBLE, in, large, places, MPI_DOUBLE, comm);
    note("Alltoallv", 2 * BYTES);
#endif
}

int main(int argc, char **argv) {
    static char buffer[65536];
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    DO(Comm_rank, 0, comm, &rank);
    peer = 1 - rank;
    types[0] = types[1] = MPI_DOUBLE;
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int times = 0; times < TIMES; times++) {
        point_to_point();
        collectives();
        neighbours();
        one_sided();
        others();
    }
    for (int at = 0; rank == 0 && made[at].name != NULL; at++)
        printf("made %s %ld %ld\n", made[at].name, made[at].count, made[at].bytes);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
