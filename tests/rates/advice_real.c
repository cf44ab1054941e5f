/* Threads of a rank work for 0.4 s each, and meet before the end. */
#include <time.h>
#ifdef RANKS
#include <mpi.h>
#endif
int main(int count, char **words) {
#ifdef RANKS
    MPI_Init(&count, &words);
    MPI_Barrier(MPI_COMM_WORLD);
#endif
#pragma omp parallel
    {
        struct timespec t = {0, 0};
        while (t.tv_nsec < 400000000 && t.tv_sec == 0)
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    }
#ifdef RANKS
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
#endif
    return 0;
}
