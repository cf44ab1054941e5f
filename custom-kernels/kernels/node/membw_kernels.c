#include "membw_kernels.h"

#include "simd.h"

/* sqrt(2) - 1 keeps copy, scale, add and triad in a cycle: the values stay what they are, round by round. */
static const double scalar = 0.41421356237309503;

const double first_values[ARRAYS] = {1.0, 2.0, 0.5, 0.25, 0.125};

const struct kernel_facts kernel_facts[KERNELS] = {
    [COPY] = {"copy", "c = a", 1, 1, 1, 3},         [SCALE] = {"scale", "b = s c", 1, 1, 1, 3},
    [ADD] = {"add", "c = a + b", 2, 1, 1, 3},       [TRIAD] = {"triad", "a = b + s c", 2, 1, 1, 3},
    [DAXPY] = {"daxpy", "d = d + s a", 2, 1, 0, 4}, [TRIAD5] = {"triad5", "e = a b + c d", 4, 1, 1, 5},
    [STORE] = {"store", "c = s", 0, 1, 1, 3},       [LOAD] = {"load", "reads a", 1, 0, 0, 3},
    [SUM] = {"sum", "sum of a", 1, 0, 0, 3},
};

/* Every loop once; `streaming` is a constant wherever this is called, so that each is compiled twice. */
#define EACH _Pragma("GCC unroll 4") for (size_t i = begin; i < end; i += SIMD_LANES)

static inline __attribute__((always_inline)) void
write_kernel(enum kernel kernel, bool streaming, const struct arrays *arrays, size_t begin, size_t end) {
    double *restrict a = arrays->at[A], *restrict b = arrays->at[B], *restrict c = arrays->at[C];
    double *restrict d = arrays->at[D], *restrict e = arrays->at[E];
    const vector s = vector_all(scalar);
    switch (kernel) {
    case COPY:
        EACH vector_put(c + i, vector_load(a + i), streaming);
        break;
    case SCALE:
        EACH vector_put(b + i, vector_mul(s, vector_load(c + i)), streaming);
        break;
    case ADD:
        EACH vector_put(c + i, vector_add(vector_load(a + i), vector_load(b + i)), streaming);
        break;
    case TRIAD:
        EACH vector_put(a + i, vector_fma(s, vector_load(c + i), vector_load(b + i)), streaming);
        break;
    case DAXPY:
        EACH vector_put(d + i, vector_fma(s, vector_load(a + i), vector_load(d + i)), streaming);
        break;
    case TRIAD5:
        EACH vector_put(e + i,
                        vector_fma(vector_load(a + i), vector_load(b + i),
                                   vector_mul(vector_load(c + i), vector_load(d + i))),
                        streaming);
        break;
    case STORE:
        EACH vector_put(c + i, s, streaming);
        break;
    default:
        break;
    }
}

/* Sum of a: eight chains of additions, so that their latency does not limit it. */
static double sum_up(const double *a, size_t begin, size_t end) {
    enum { CHAINS = 8 };
    vector sums[CHAINS];
    double sum = 0.0;
    for (int chain = 0; chain < CHAINS; chain++)
        sums[chain] = vector_all(0.0);
    for (size_t i = begin; i < end; i += CHAINS * SIMD_LANES)
        for (int chain = 0; chain < CHAINS; chain++)
            sums[chain] = vector_add(sums[chain], vector_load(a + i + (size_t)chain * SIMD_LANES));
    for (int chain = 0; chain < CHAINS; chain++)
        sum += vector_sum(sums[chain]);
    return sum;
}

/* Where an asm statement may ask for a vector register. */
#if defined(__aarch64__)
#define REGISTER "w"
#elif defined(__AVX512F__)
#define REGISTER "v"
#elif defined(__x86_64__)
#define REGISTER "x"
#else
#define REGISTER "g"
#endif

/* Only the loads: the empty statement needs the value in a register and does nothing with it. */
static void load_all(const double *a, size_t begin, size_t end) {
    EACH {
        vector value = vector_load(a + i);
        __asm__ volatile("" : : REGISTER(value));
    }
}

double kernel_run(enum kernel kernel, bool streaming, const struct arrays *arrays, size_t begin, size_t end) {
    if (kernel == SUM)
        return sum_up(arrays->at[A], begin, end);
    if (kernel == LOAD)
        load_all(arrays->at[A], begin, end);
    else if (streaming) {
        write_kernel(kernel, true, arrays, begin, end);
        streams_end();
    } else
        write_kernel(kernel, false, arrays, begin, end);
    return 0.0;
}

void kernel_expect(enum kernel kernel, double *element) {
    switch (kernel) {
    case COPY:
        element[C] = element[A];
        break;
    case SCALE:
        element[B] = scalar * element[C];
        break;
    case ADD:
        element[C] = element[A] + element[B];
        break;
    case TRIAD:
        element[A] = element[B] + scalar * element[C];
        break;
    case DAXPY:
        element[D] += scalar * element[A];
        break;
    case TRIAD5:
        element[E] = element[A] * element[B] + element[C] * element[D];
        break;
    case STORE:
        element[C] = scalar;
        break;
    default:
        break;
    }
}
