/* A program that mostly calls MPI_Allreduce, or never. */
#include <mpi.h>
#include <stdio.h>
static double data[1024], sum[1024];
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double begin = MPI_Wtime(), work = 0;
    for (int i = 0; argc < 2 ? MPI_Wtime() < begin + 0.3 : i < 2000; i++) {
        if (argc > 1)
            MPI_Allreduce(data, sum, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < 1000; k++)
            work += k * 1e-9;
    }
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("Time: %.9f s (%g)\n", MPI_Wtime() - begin, work);
    return MPI_Finalize();
}
