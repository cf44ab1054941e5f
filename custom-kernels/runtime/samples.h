/* Statistics of repeated timings. */
#ifndef PLUMB_KERNEL_SAMPLES_H
#define PLUMB_KERNEL_SAMPLES_H

#include <stddef.h>

struct summary {
    double least, median, p99, most, mean;
};

/* Sorts `values`. The p99 is the nearest-rank percentile. `count` must be at least 1. */
struct summary summarize(double *values, size_t count);

enum { LEAST_FOR_INTERVAL = 6 };

/* The interval that holds the true median with a probability of at least 95 %, whatever the distribution: the
 * order statistics that the sign test leaves of `count` sorted, independent values. Fewer than
 * LEAST_FOR_INTERVAL have none: both ends are NAN. */
struct interval {
    double low, high;
};
struct interval median_interval(const double *sorted, size_t count);

#endif
