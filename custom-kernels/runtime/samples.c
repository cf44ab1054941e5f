#include "samples.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

struct summary summarize(double *values, size_t count) {
    qsort(values, count, sizeof *values, ascending);
    double sum = 0.0;
    for (size_t index = 0; index < count; index++)
        sum += values[index];
    size_t p99 = (99 * count + 99) / 100;
    return (struct summary){
        .least = values[0],
        .median = count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]),
        .p99 = values[(p99 > count ? count : p99) - 1],
        .most = values[count - 1],
        .mean = sum / (double)count,
    };
}

struct interval median_interval(const double *sorted, size_t count) {
    /* Chance that at most `below` of the values lie below the median: a sum of C(count, k) / 2^count. */
    double n = (double)count, outside = 0.0;
    size_t below = 0;
    for (; below < count; below++) {
        double k = (double)below;
        outside += exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) - n * M_LN2);
        if (2.0 * outside > 0.05)
            break;
    }
    if (below == 0)
        return (struct interval){NAN, NAN};
    return (struct interval){sorted[below - 1], sorted[count - below]};
}
