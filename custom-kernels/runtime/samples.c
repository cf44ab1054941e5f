#include "samples.h"

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
