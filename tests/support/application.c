/* A program of a repository that is not ours: its first word is how it behaves. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void work(double seconds) {
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end) {
    }
}
static void *pool(void *nothing) {
    work(0.2);
    return nothing;
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "well";
    if (!strcmp(how, "alone")) {
        work(0.2);
        printf("Rate: %d.%d GF/s\nSum: 1.25\n", 10, getpid());
        return 0;
    }
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    work(0.2);
    if (!strcmp(how, "pool") || !strcmp(how, "alike")) {
        pthread_t other;
        pthread_create(&other, NULL, pool, NULL);
        work(0.1);
        pthread_join(other, NULL);
    }
    if (!strcmp(how, "leaves") && rank == 0) {
        int ends[2];
        char none;
        if (pipe(ends) == 0 && fork() == 0) {
            setsid();
            work(0.5);
            close(ends[1]);
            work(5.0); /* far longer than the ranks take to end */
            raise(SIGKILL);
        }
        close(ends[1]);
        if (read(ends[0], &none, 1) != 0)
            return 1; /* the end: the daemon has worked for a while */
    }
    if (rank == 0)
        printf("Rate: %d.%d GF/s\nSum: %s\n", 10, getpid(), strcmp(how, "wrong") ? "1.25" : "1.26");
    return MPI_Finalize();
}
