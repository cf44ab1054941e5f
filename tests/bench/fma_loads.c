/* What the loads of a matrix product cost: the rate (GFlop/s) of multiply-adds between registers, and of
 * those with the operands of DGEMM's inner loop, for 24 x 8 values of C and panels of A and B of several
 * depths, in turn on one core with AVX-512.
 *
 * cc -O3 -march=native tests/bench/fma_loads.c -o build/fma_loads && taskset -c 1 build/fma_loads */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 24, COLUMNS = 8, LANES = 8, CHAINS = 20, DEEPEST = 384, TURNS = 60, FLOPS = 16000000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double sum_of(const __m512d *values, int count) {
    double sum = 0;
    for (int index = 0; index < count; index++)
        sum += _mm512_reduce_add_pd(values[index]);
    return sum;
}

/* Both return the floating-point operations that they did: whole loops, FLOPS of them at most. */

static double registers_only(double *sink) {
    const long loops = FLOPS / (2 * LANES * CHAINS);
    const __m512d factor = _mm512_set1_pd(0.999999), term = _mm512_set1_pd(1e-6);
    __m512d sums[CHAINS];
    for (int chain = 0; chain < CHAINS; chain++)
        sums[chain] = _mm512_set1_pd(chain);
    for (long loop = 0; loop < loops; loop++)
#pragma GCC unroll 32
        for (int chain = 0; chain < CHAINS; chain++)
            sums[chain] = _mm512_fmadd_pd(factor, sums[chain], term);
    *sink += sum_of(sums, CHAINS);
    return 2.0 * LANES * CHAINS * (double)loops;
}

static double with_loads(const double *a, const double *b, int depth, double *sink) {
    const long flops = 2L * ROWS * COLUMNS * depth, loops = FLOPS / flops;
    __m512d c[COLUMNS][ROWS / LANES];
    for (int index = 0; index < COLUMNS * ROWS / LANES; index++)
        c[index / 3][index % 3] = _mm512_setzero_pd();
    for (long loop = 0; loop < loops; loop++)
        for (int k = 0; k < depth; k++) {
            const double *left = a + (long)ROWS * k;
            const __m512d rows[] = {_mm512_load_pd(left), _mm512_load_pd(left + 8),
                                    _mm512_load_pd(left + 16)};
#pragma GCC unroll 8
            for (int j = 0; j < COLUMNS; j++) {
                const __m512d value = _mm512_set1_pd(b[COLUMNS * k + j]);
                c[j][0] = _mm512_fmadd_pd(rows[0], value, c[j][0]);
                c[j][1] = _mm512_fmadd_pd(rows[1], value, c[j][1]);
                c[j][2] = _mm512_fmadd_pd(rows[2], value, c[j][2]);
            }
        }
    *sink += sum_of(c[0], COLUMNS * ROWS / LANES);
    return (double)(flops * loops);
}

int main(void) {
    static const int depths[] = {0, 64, 100, 192, 256, DEEPEST};
    enum { KINDS = sizeof depths / sizeof *depths };
    double *a = aligned_alloc(64, sizeof *a * ROWS * DEEPEST),
           *b = aligned_alloc(64, sizeof *b * COLUMNS * DEEPEST);
    double best[KINDS] = {0}, sink = 0;
    if (a == NULL || b == NULL)
        return 1;
    for (int index = 0; index < ROWS * DEEPEST; index++)
        a[index] = b[index / 3] = 1e-3 * index;
    for (int turn = 0; turn < TURNS; turn++)
        for (int kind = 0; kind < KINDS; kind++) {
            double begin = now();
            double flops = kind == 0 ? registers_only(&sink) : with_loads(a, b, depths[kind], &sink);
            double rate = 1e-9 * flops / (now() - begin);
            best[kind] = rate > best[kind] ? rate : best[kind];
        }
    printf("registers only      %6.1f GFlop/s\n", best[0]);
    for (int kind = 1; kind < KINDS; kind++)
        printf("panels %3d deep     %6.1f GFlop/s  %.3f  (A: %d KiB, B: %d KiB)\n", depths[kind], best[kind],
               best[kind] / best[0], ROWS * depths[kind] / 128, COLUMNS * depths[kind] / 128);
    free(a);
    free(b);
    return sink == 0.5;
}
