#include "fma_peak.h"

#include "simd.h"

/* Unrolled, or the sums would not stay in registers. */
#define EACH_CHAIN _Pragma("GCC unroll 32") for (int chain = 0; chain < CHAINS; chain++)

/* Two to four units with a latency of four or five: at most 16 chains are in flight, and 12 fit the 16
 * registers of AVX2. */
#if defined(__AVX2__) && !defined(__AVX512F__)
enum { CHAINS = 12 };
#else
enum { CHAINS = 20 };
#endif

double fma_work(long loops, double *sink) {
    vector sums[CHAINS];
    const vector factor = vector_all(0.999999), term = vector_all(1e-6);
    EACH_CHAIN
    sums[chain] = vector_all(1.0 + chain);
    for (long loop = 0; loop < loops; loop++)
        EACH_CHAIN
    sums[chain] = vector_fma(factor, sums[chain], term);
    EACH_CHAIN
    *sink += vector_sum(sums[chain]);
    return 2.0 * SIMD_LANES * CHAINS * (double)loops;
}
