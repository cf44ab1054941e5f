/* The update of one row of points: each becomes the mean of its six neighbours.
 *
 * The terms are added in one fixed order and nothing is contracted, so that every caller gets the same bits.
 */
#ifndef PLUMB_JACOBI_ROW_H
#define PLUMB_JACOBI_ROW_H

#include "simd.h"

#include <stdbool.h>

/* The row itself and its neighbours in y and z; all are aligned to a vector at index 0. */
struct rows {
    const double *middle, *y_before, *y_after, *z_before, *z_after;
};

static const double one_sixth = 1.0 / 6.0;

static inline double mean_of_six(double x_before, double x_after, double y_before, double y_after,
                                 double z_before, double z_after) {
    return (((x_before + x_after) + (y_before + y_after)) + (z_before + z_after)) * one_sixth;
}

/* The vectors that lie one element before and one element after `current`. */
#if defined(__AVX512F__)
static inline vector element_before(vector previous, vector current) {
    return _mm512_castsi512_pd(
        _mm512_alignr_epi64(_mm512_castpd_si512(current), _mm512_castpd_si512(previous), 7));
}
static inline vector element_after(vector current, vector next) {
    return _mm512_castsi512_pd(
        _mm512_alignr_epi64(_mm512_castpd_si512(next), _mm512_castpd_si512(current), 1));
}
#elif defined(__AVX2__) && defined(__FMA__)
static inline vector element_before(vector previous, vector current) {
    return _mm256_shuffle_pd(_mm256_permute2f128_pd(previous, current, 0x21), current, 5);
}
static inline vector element_after(vector current, vector next) {
    return _mm256_shuffle_pd(current, _mm256_permute2f128_pd(current, next, 0x21), 5);
}
#elif defined(__aarch64__) && defined(__ARM_NEON)
static inline vector element_before(vector previous, vector current) {
    return vextq_f64(previous, current, 1);
}
static inline vector element_after(vector current, vector next) {
    return vextq_f64(current, next, 1);
}
#else
static inline vector element_before(vector previous, vector current) {
    (void)current;
    return previous;
}
static inline vector element_after(vector current, vector next) {
    (void)current;
    return next;
}
#endif

static inline vector mean_vector(struct rows rows, long x, vector x_before, vector x_after) {
    vector y = vector_add(vector_load(rows.y_before + x), vector_load(rows.y_after + x));
    vector z = vector_add(vector_load(rows.z_before + x), vector_load(rows.z_after + x));
    vector sum = vector_add(vector_add(vector_add(x_before, x_after), y), z);
    return vector_mul(sum, vector_all(one_sixth));
}

/* One point at a time, for the ends of a row. */
static inline void update_points(double *to, struct rows rows, long begin, long end, double left,
                                 double right) {
    for (long x = begin; x < end; x++)
        to[x] = mean_of_six(x > begin ? rows.middle[x - 1] : left, x + 1 < end ? rows.middle[x + 1] : right,
                            rows.y_before[x], rows.y_after[x], rows.z_before[x], rows.z_after[x]);
}

/* Points [begin, end) of a row; `left` and `right` are the values beside them. Whole vectors are stored past
 * the caches if `streaming`. The row after it in z, the only one that comes from memory, is prefetched
 * `ahead` doubles in advance: hardware does not follow it well among the other streams. 0: not at all. */
static inline void update_row(double *to, struct rows rows, long begin, long end, double left, double right,
                              bool streaming, long ahead) {
    long first = begin + (SIMD_LANES - begin % SIMD_LANES) % SIMD_LANES;
    long last = end - (end % SIMD_LANES + SIMD_LANES) % SIMD_LANES;
    if (first >= last) {
        update_points(to, rows, begin, end, left, right);
        return;
    }
    if (begin < first) {
        update_points(to, rows, begin, first, left, rows.middle[first]);
        left = rows.middle[first - 1];
    }
    if (last < end) {
        update_points(to, rows, last, end, rows.middle[last - 1], right);
        right = rows.middle[last];
    }
    vector previous = vector_all(left), current = vector_load(rows.middle + first);
    long x = first;
    for (; x + SIMD_LANES < last; x += SIMD_LANES) {
        vector next = vector_load(rows.middle + x + SIMD_LANES);
        if (ahead)
            __builtin_prefetch(rows.z_after + x + ahead);
        vector_put(to + x,
                   mean_vector(rows, x, element_before(previous, current), element_after(current, next)),
                   streaming);
        previous = current;
        current = next;
    }
    vector_put(
        to + x,
        mean_vector(rows, x, element_before(previous, current), element_after(current, vector_all(right))),
        streaming);
}

#endif
