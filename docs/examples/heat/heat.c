/* Heat in a square plate: Jacobi iterations, rows shared among MPI ranks, columns among OpenMP threads. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Every so many steps all ranks ask how much has changed. */
#define CHECK_EVERY 1000

static double *plate, *next;
static int columns, rows; /* of this rank, without the borders */

static double *row(double *field, int number) {
    return field + (size_t)number * (size_t)(columns + 2);
}

static void exchange(int rank, int size) {
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(row(plate, 1), columns + 2, MPI_DOUBLE, above, 0, row(plate, rows + 1), columns + 2,
                 MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(row(plate, rows), columns + 2, MPI_DOUBLE, below, 1, row(plate, 0), columns + 2, MPI_DOUBLE,
                 above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void step(void) {
#pragma omp parallel for
    for (int i = 1; i <= rows; i++) {
        const double *up = row(plate, i - 1), *here = row(plate, i), *down = row(plate, i + 1);
        double *to = row(next, i);
        for (int j = 1; j <= columns; j++)
            to[j] = 0.25 * (up[j] + down[j] + here[j - 1] + here[j + 1]);
    }
    double *swapped = plate;
    plate = next;
    next = swapped;
}

static double sum_of(double *first, double *second) {
    double sum = 0.0, all;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++)
            sum += first == second ? row(first, i)[j] : row(first, i)[j] - row(second, i)[j];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    int rank, size, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    columns = argc > 1 ? atoi(argv[1]) : 600;
    int steps = argc > 2 ? atoi(argv[2]) : 3000;
    rows = columns / size + (rank < columns % size);
    size_t cells = (size_t)(rows + 2) * (size_t)(columns + 2);
    plate = malloc(cells * sizeof *plate);
    next = malloc(cells * sizeof *next);
    if (plate == NULL || next == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
#pragma omp parallel for
    for (int i = 0; i <= rows + 1; i++) /* each thread touches the rows that it will work on */
        for (int j = 0; j <= columns + 1; j++)
            row(plate, i)[j] = row(next, i)[j] = j == 0 ? 1.0 : 0.0;
    double begin = MPI_Wtime(), change = 0.0;
    for (int number = 1; number <= steps; number++) {
        exchange(rank, size);
        step();
        if (number % CHECK_EVERY == 0)
            change = sum_of(plate, next);
    }
    double seconds = MPI_Wtime() - begin, sum = sum_of(plate, plate);
    if (rank == 0) {
        printf("Performance: %.2f MLUP/s\n", 1e-6 * columns * columns * steps / seconds);
        printf("Sum: %.9f\n", sum);
        if (change < 0.0)
            printf("The plate cools.\n");
    }
    free(plate);
    free(next);
    return MPI_Finalize();
}
