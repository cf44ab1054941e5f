/* Four threads that call MPI at once, for the tests of profiles. */
#include <mpi.h>
#include <pthread.h>
enum { TIMES = 20000 };
static int rank; /* to itself: no thread waits for a CPU of another rank */
static void *work(void *tag) {
    int value = 0, other;
    for (int time = 0; time < TIMES; time++)
        MPI_Sendrecv(&value, 1, MPI_INT, rank, *(int *)tag, &other, 1, MPI_INT, rank, *(int *)tag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}
int main(int argc, char **argv) {
    int provided, tags[4] = {0, 1, 2, 3};
    pthread_t threads[4];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int thread = 0; thread < 4; thread++)
        pthread_create(&threads[thread], NULL, work, &tags[thread]);
    for (int thread = 0; thread < 4; thread++)
        pthread_join(threads[thread], NULL);
    MPI_Finalize();
    return provided == MPI_THREAD_MULTIPLE ? 0 : 4;
}
