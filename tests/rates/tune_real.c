/* Each thread computes by itself, in registers. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    const double begin = omp_get_wtime();
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        volatile double value = 1;
        for (long left = atol(words[1]); left; left--)
            value = value * 1.0000001 + 1e-9;
        sum += value;
    }
    printf("sum of %d: %.9e\ntime: %.6f s\n", omp_get_max_threads(), sum, omp_get_wtime() - begin);
    return count != 2;
}
