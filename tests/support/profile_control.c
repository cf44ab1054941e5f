/* Switches the profile off and on by MPI_Pcontrol, for the tests of profiles. */
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>
static int rank, out[4], in[4];
static void *sends_to_itself(void *unused) {
    MPI_Ssend(out, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
    return unused;
}
int main(int argc, char **argv) {
    int provided, peer;
    pthread_t thread;
    MPI_Comm comm;
    MPI_Request persistent, early, late, both[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Pcontrol(0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Send_init(&out[0], 1, MPI_INT, peer, 0, comm, &persistent);
    MPI_Irecv(&in[1], 1, MPI_INT, peer, 1, comm, &early);
    MPI_Start(&persistent); /* off, and found complete while on */
    usleep(50000);
    MPI_Pcontrol(1, "more arguments are others'");
    MPI_Pcontrol(1);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Recv(&in[0], 1, MPI_INT, peer, 0, comm, MPI_STATUS_IGNORE);
    MPI_Isend(&out[1], 1, MPI_INT, peer, 1, comm, &both[0]);
    MPI_Irecv(&in[2], 1, MPI_INT, peer, 2, comm, &late); /* found complete while off */
    MPI_Irecv(&in[0], 1, MPI_INT, peer, 0, comm, &both[1]);
    MPI_Start(&persistent);
    MPI_Pcontrol(0);
    usleep(100000);
    MPI_Pcontrol(0);
    MPI_Send(&out[2], 1, MPI_INT, peer, 2, comm);
    MPI_Wait(&late, MPI_STATUS_IGNORE);
    MPI_Pcontrol(1);
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Pcontrol(2);
    pthread_create(&thread, NULL, sends_to_itself, NULL);
    MPI_Probe(rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pcontrol(0); /* while the other thread is in MPI_Ssend */
    MPI_Pcontrol(1);
    MPI_Recv(&in[3], 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
    MPI_Pcontrol(0);
    MPI_Request_free(&persistent);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return provided == MPI_THREAD_MULTIPLE ? 0 : 4;
}
