/* The least time, in ns, of an MPI call that does almost nothing: a receive from MPI_PROC_NULL, and an
 * exchange of a rank with itself. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { BATCHES = 4000, CALLS = 200 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int give = 0, get = 0;
    double least[2] = {1e9, 1e9};
    for (int batch = 0; batch < BATCHES; batch++)
        for (int kind = 0; kind < 2; kind++) {
            double begin = now();
            for (int call = 0; call < CALLS && kind == 0; call++)
                MPI_Recv(&get, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int call = 0; call < CALLS && kind == 1; call++)
                MPI_Sendrecv(&give, 1, MPI_INT, 0, 0, &get, 1, MPI_INT, 0, 0, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
            double taken = (now() - begin) / CALLS;
            least[kind] = taken < least[kind] ? taken : least[kind];
        }
    printf("%.2f %.2f\n", least[0], least[1]);
    return MPI_Finalize();
}
