/* The values that the solvers start from and what they must become: an eigenmode of the sweep on a plane.
 *
 * u(x,y,z) = line_x + line_y + line_z + wave_x wave_y wave_z. The mean of six neighbours leaves the linear
 * part as it is and multiplies the waves by the mean of three cosines, in exact arithmetic. */
#ifndef PLUMB_JACOBI_FIELD_H
#define PLUMB_JACOBI_FIELD_H

#include "jacobi_split.h"

#include <stdint.h>

/* Tables of one box: entry i of dimension d belongs to global index first[d] + i. */
struct field {
    double *line[DIMENSIONS], *wave[DIMENSIONS];
    long first[DIMENSIONS];
    double decay; /* of the waves in one sweep */
};

/* Tables for the points of `box` in a grid of `points`. Fixed boundaries lie at index -1 and `points`. */
struct field field_make(const long points[DIMENSIONS], bool periodic, const struct box *box);
void field_free(struct field *field);

/* The value at a point after n sweeps, where scale = decay^n; and a bound of its rounding error after
 * `sweeps` sweeps. */
double field_value(const struct field *field, long x, long y, long z, double scale);
double field_tolerance(long sweeps);

/* What a solution is compared by. None of them depends on the order in which points are visited. */
struct findings {
    double residual;   /* largest change that one more sweep would make */
    double error;      /* largest distance from the exact solution */
    uint64_t checksum; /* of all bits and where they stand: sum of hashes, modulo 2^64 */
};

/* The hash of one point's value at global position `index`. */
static inline uint64_t point_hash(uint64_t index, double value) {
    union {
        double real;
        uint64_t bits;
    } as = {value};
    /* The finalizer of splitmix64 (Steele, Lea, Flood 2014), once for the place and once for both. */
    uint64_t mix = index * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
    mix = (mix ^ (mix >> 30)) * 0xbf58476d1ce4e5b9u;
    mix = (mix ^ (mix >> 27)) * 0x94d049bb133111ebu;
    mix = (mix ^ (mix >> 31)) ^ as.bits;
    mix = (mix ^ (mix >> 30)) * 0xbf58476d1ce4e5b9u;
    mix = (mix ^ (mix >> 27)) * 0x94d049bb133111ebu;
    return mix ^ (mix >> 31);
}

/* The larger of two, where not a number is the largest of all. */
static inline double larger(double a, double b) {
    return a >= b || a != a ? a : b;
}

/* Add one point to `found`: its global index, its value, the value after one more sweep, and the exact
 * value. */
static inline void findings_add(struct findings *found, uint64_t index, double value, double next,
                                double exact) {
    found->residual = larger(found->residual, next > value ? next - value : value - next);
    found->error = larger(found->error, exact > value ? exact - value : value - exact);
    found->checksum += point_hash(index, value);
}

void findings_merge(struct findings *into, const struct findings *other);

#endif
