/* Of two ranks, and more where a variable of the environment has a value. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank;
    double one = 1.0, sum = 0.0;
    const char *allocator = getenv("ALLOCATOR");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (allocator && !strcmp(allocator, "slow"))
        one *= 1.25;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("steps: %.3f\n", 500 * sum * (1 + 0.00002 * (getpid() % 97)));
    return MPI_Finalize();
}
