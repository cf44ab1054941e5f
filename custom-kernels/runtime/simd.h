/* The widest vector of doubles that this build has, with its streaming (non-temporal) store. */
#ifndef PLUMB_KERNEL_SIMD_H
#define PLUMB_KERNEL_SIMD_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define SIMD_NAME "AVX-512"
enum { SIMD_LANES = 8, SIMD_STREAMS = 1, SIMD_FMA = 1 };
typedef __m512d vector;
#define vector_all(value) _mm512_set1_pd(value)
#define vector_load(at) _mm512_load_pd(at)
#define vector_store(at, value) _mm512_store_pd(at, value)
#define vector_stream(at, value) _mm512_stream_pd(at, value)
#define vector_add(a, b) _mm512_add_pd(a, b)
#define vector_mul(a, b) _mm512_mul_pd(a, b)
#define vector_fma(a, b, c) _mm512_fmadd_pd(a, b, c)
#define streams_end() _mm_sfence()

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define SIMD_NAME "AVX2"
enum { SIMD_LANES = 4, SIMD_STREAMS = 1, SIMD_FMA = 1 };
typedef __m256d vector;
#define vector_all(value) _mm256_set1_pd(value)
#define vector_load(at) _mm256_load_pd(at)
#define vector_store(at, value) _mm256_store_pd(at, value)
#define vector_stream(at, value) _mm256_stream_pd(at, value)
#define vector_add(a, b) _mm256_add_pd(a, b)
#define vector_mul(a, b) _mm256_mul_pd(a, b)
#define vector_fma(a, b, c) _mm256_fmadd_pd(a, b, c)
#define streams_end() _mm_sfence()

#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
/* STNP is only a hint, and these cores notice streams of stores by themselves: no streaming stores. */
#define SIMD_NAME "NEON"
enum { SIMD_LANES = 2, SIMD_STREAMS = 0, SIMD_FMA = 1 };
typedef float64x2_t vector;
#define vector_all(value) vdupq_n_f64(value)
#define vector_load(at) vld1q_f64(at)
#define vector_store(at, value) vst1q_f64(at, value)
#define vector_stream(at, value) vst1q_f64(at, value)
#define vector_add(a, b) vaddq_f64(a, b)
#define vector_mul(a, b) vmulq_f64(a, b)
#define vector_fma(a, b, c) vfmaq_f64(c, a, b)
#define streams_end() ((void)0)

#else
/* One element at a time: the compiler may still vectorize the loops. */
#define SIMD_NAME "plain C"
enum { SIMD_LANES = 1, SIMD_STREAMS = 0, SIMD_FMA = 0 };
typedef double vector;
#define vector_all(value) (value)
#define vector_load(at) (*(const double *)(at))
#define vector_store(at, value) (*(at) = (value))
#define vector_stream(at, value) (*(at) = (value))
#define vector_add(a, b) ((a) + (b))
#define vector_mul(a, b) ((a) * (b))
#define vector_fma(a, b, c) ((a) * (b) + (c))
#define streams_end() ((void)0)
#endif

/* The sum of the lanes. */
static inline double vector_sum(vector value) {
    union {
        vector whole;
        double lane[SIMD_LANES];
    } parts = {value};
    double sum = 0.0;
    for (int lane = 0; lane < SIMD_LANES; lane++)
        sum += parts.lane[lane];
    return sum;
}

/* Store past the cache or not. What stands around the streaming store keeps clang from making one regular
 * store of both branches. */
static inline void vector_put(double *at, vector value, bool streaming) {
    if (streaming) {
        __asm__ volatile("");
        vector_stream(at, value);
        __asm__ volatile("");
    } else
        vector_store(at, value);
}

#endif
