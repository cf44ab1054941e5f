#include "jacobi_field.h"

#include "fail_together.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The dimensions differ, so that a solver which confuses them is detected. */
static const double modes[DIMENSIONS] = {1, 2, 1}, phases[DIMENSIONS] = {0.3, 0.7, 1.1},
                    slopes[DIMENSIONS] = {0.5, -0.25, 1.0};

/* Radians between two neighbouring points. */
static double step(long points, bool periodic, int d) {
    return periodic ? 2.0 * M_PI * modes[d] / (double)points : M_PI * modes[d] / (double)(points + 1);
}

static void fill(struct field *field, const long points[DIMENSIONS], bool periodic, int d, long count) {
    field->line[d] = allocate((size_t)count, sizeof(double));
    field->wave[d] = allocate((size_t)count, sizeof(double));
    for (long i = 0; i < count; i++) {
        long at = field->first[d] + i;
        if (periodic) {
            at = (at % points[d] + points[d]) % points[d];
            field->wave[d][i] = sin(step(points[d], true, d) * (double)at + phases[d]);
        } else {
            bool outside = at < 0 || at >= points[d];
            field->line[d][i] = slopes[d] * (double)(at + 1) / (double)(points[d] + 1);
            field->wave[d][i] = outside ? 0.0 : sin(step(points[d], false, d) * (double)(at + 1));
        }
    }
}

struct field field_make(const long points[DIMENSIONS], bool periodic, const struct box *box) {
    struct field field = {.decay = 0.0};
    for (int d = 0; d < DIMENSIONS; d++) {
        field.first[d] = box->range[d].begin;
        field.decay += cos(step(points[d], periodic, d)) / 3.0;
        fill(&field, points, periodic, d, box->range[d].end - box->range[d].begin);
    }
    return field;
}

void field_free(struct field *field) {
    for (int d = 0; d < DIMENSIONS; d++) {
        free(field->line[d]);
        free(field->wave[d]);
    }
}

double field_value(const struct field *field, long x, long y, long z, double scale) {
    long i = x - field->first[X], j = y - field->first[Y], k = z - field->first[Z];
    return field->line[X][i] + field->line[Y][j] + field->line[Z][k] +
           scale * (field->wave[X][i] * field->wave[Y][j] * field->wave[Z][k]);
}

double field_tolerance(long sweeps) {
    /* Values are below 4. Six roundings a sweep, each at most half a unit in the last place of a sum of six,
     * are passed on without growing; the start and the exact solution are rounded, too. */
    return (double)(sweeps + 10) * 6.0 * 4.0 * DBL_EPSILON;
}

void findings_merge(struct findings *into, const struct findings *other) {
    into->residual = larger(into->residual, other->residual);
    into->error = larger(into->error, other->error);
    into->checksum += other->checksum;
}
