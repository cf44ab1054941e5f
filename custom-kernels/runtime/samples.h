/* What many timings of one thing amount to. */
#ifndef PLUMB_KERNEL_SAMPLES_H
#define PLUMB_KERNEL_SAMPLES_H

#include <stddef.h>

struct summary {
    double least, median, p99, most, mean;
};

/* Sorts `values`. The p99 is the nearest-rank percentile. `count` must be at least 1. */
struct summary summarize(double *values, size_t count);

#endif
