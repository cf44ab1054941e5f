/* Pi by the midpoint rule: every rank and thread takes its share of the intervals. */
#include "program.h"
#include "result.h"
#include "timer.h"

#include <math.h>

static size_t intervals = 100000000;
static long repetitions = 5;

static const struct argument arguments[] = {
    {"--intervals", ARGUMENT_SIZE, &intervals, 1, 1e12, NULL, "intervals of the sum"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL, "timed repetitions; the best one counts"},
    {.name = NULL},
};

static const struct program program = {
    .name = "pi",
    .summary = "pi as the integral of 4/(1+x^2) from 0 to 1, by ranks and threads",
    .method =
        "The sum runs over midpoints x = (i + 1/2)/n, i from 0 on. With x = (i - 1/2)/n, as a teaching\n"
        "code has it, the result is about 2/n too large. The result is printed, and records keep it.\n"
        "time: the fastest repetition. Model: none; the division limits it. Check: the error of the result.",
    .arguments = arguments,
};

static double own_share(void) {
    double sum = 0.0, width = 1.0 / (double)intervals;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (size_t index = (size_t)program_rank(); index < intervals; index += (size_t)program_ranks()) {
        double x = ((double)index + 0.5) * width;
        sum += 4.0 / (1.0 + x * x);
    }
    return sum * width;
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    double best = INFINITY, pi = 0.0;
    for (long repetition = 0; repetition < repetitions; repetition++) {
        MPI_Barrier(MPI_COMM_WORLD);
        uint64_t begin = ticks();
        double share = own_share();
        MPI_Allreduce(&share, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        best = fmin(best, ticks_s(ticks() - begin));
    }
    best = ranks_max(best);
    struct result *result = result_new();
    struct row *row = result_row(result);
    row_integer(row, "intervals", (long long)intervals);
    row_figure(row, "time", "us", LOWER_IS_BETTER, best * 1e6, repetitions);
    result_remark(result, "pi = %.12f", pi);
    /* The midpoint rule's error is 1/(12 n^2) here; beyond that, rounding of a sum of n terms. */
    double n = (double)intervals, tolerance = 1.0 / (12.0 * n * n) + 1e-16 * sqrt(n) + 1e-13;
    result_check(result, fabs(pi - M_PI) <= tolerance, "pi", fabs(pi - M_PI), tolerance);
    return result_finish(result);
}
