/* GFlop/s of a BLAS's DGEMM on all cores at once, by which an installation chooses the BLAS. It is compiled
 * and run before there is an MPI library, and is not a benchmark: each thread counts its own processor time,
 * so that other programs on the machine decide nothing. */
#define _POSIX_C_SOURCE 199309L
#include "blas.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 1280, REPETITIONS = 5 };

static double *matrix(void) {
    double *values = malloc(sizeof(double) * SIZE * SIZE);
    for (int index = 0; values && index < SIZE * SIZE; index++)
        values[index] = 1.0 / (1.0 + index % 1009);
    return values;
}

/* Processor time of the calling thread, in s. */
static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(void) {
    const int n = SIZE, threads = omp_get_num_places() > 0 ? omp_get_num_places() : omp_get_max_threads();
    const double one = 1.0, zero = 0.0;
    double *a = matrix(), *b = matrix();
    double rate = 0.0;
    int failed = !a || !b;
    blas_one_thread();
#pragma omp parallel num_threads(threads) reduction(|| : failed) reduction(+ : rate)
    {
        double *c = matrix(), best = INFINITY;
        failed = failed || !a || !b || !c;
        for (int repetition = 0; !failed && repetition < REPETITIONS; repetition++) {
            double begin = used();
            BLAS(dgemm_)("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
            best = fmin(best, used() - begin);
        }
        rate += 2e-9 * n * n * n / best;
        free(c);
    }
    free(a);
    free(b);
    if (failed) {
        fprintf(stderr, "error: no memory for %d matrices\n", threads + 2);
        return 1;
    }
    printf("%.2f\n", rate);
    return 0;
}
