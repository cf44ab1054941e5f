/* The 1D heat equation, explicit, 11 points, 3 steps: the published values on any number of ranks and
 * threads. */
#include "fail_together.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 11, STEPS = 3, LEFT = 1, RIGHT = 2 };

/* Values after 3 steps at points 1 to 5, as published; the profile is symmetric. */
static const double published[] = {0.307205621017285, 0.584339815421976, 0.804274757358271, 0.945481682332598,
                                   0.994138272681972};

static long repetitions = 1000;

static const struct argument arguments[] = {
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL, "timed repetitions of the 3 steps"},
    {.name = NULL},
};

static const struct program program = {
    .name = "heat1d",
    .summary = "1D heat equation, 11 points, 3 explicit steps, against the published values",
    .method = "dT/dt = 2 d2T/dx2 with T(0) = T(1) = 0 and T(x,0) = sin(pi x), dx = 0.1, dt = 1e-4. Values "
              "are compared\n"
              "to 15 digits. Figure: median time of the 3 steps with their halo exchanges, a latency.\n"
              "Source: SDSC Summer Institute 2019, MPI and OpenMP heat equation.",
    .arguments = arguments,
    .narrows_profile = true,
};

/* Interior points 1..9 are dealt in blocks; a rank may have none. */
static int first_point(int rank) {
    return 1 + (POINTS - 2) * rank / program_ranks();
}

/* The rank that owns interior point `point`. */
static int owner(int point) {
    int rank = 0;
    while (first_point(rank + 1) <= point)
        rank++;
    return rank;
}

/* Points just outside [first, last) come from their owners; the walls at 0 and 10 stay zero. */
static void exchange(double *value, int first, int last) {
    MPI_Request requests[4];
    int count = 0;
    if (first > 1) {
        int left = owner(first - 1);
        MPI_Irecv(&value[first - 1], 1, MPI_DOUBLE, left, RIGHT, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(&value[first], 1, MPI_DOUBLE, left, LEFT, MPI_COMM_WORLD, &requests[count++]);
    }
    if (last < POINTS - 1) {
        int right = owner(last);
        MPI_Irecv(&value[last], 1, MPI_DOUBLE, right, LEFT, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(&value[last - 1], 1, MPI_DOUBLE, right, RIGHT, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void solve(double *value, int first, int last) {
    const double factor = 2.0 * 1e-4 / 0.1 / 0.1;
    double next[POINTS];
    for (int point = 0; point < POINTS; point++)
        value[point] = point == 0 || point == POINTS - 1 ? 0.0 : sin(M_PI * 0.1 * point);
    for (int step = 0; step < STEPS; step++) {
#pragma omp parallel for schedule(static)
        for (int point = first; point < last; point++)
            next[point] = value[point] + factor * (value[point - 1] - 2.0 * value[point] + value[point + 1]);
        if (last > first) {
            memcpy(value + first, next + first, (size_t)(last - first) * sizeof *value);
            exchange(value, first, last);
        }
    }
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    int first = first_point(program_rank()), last = first_point(program_rank() + 1);
    double value[POINTS], all[POINTS] = {0};
    double *times = allocate((size_t)repetitions, sizeof *times);
    for (long repetition = 0; repetition < repetitions; repetition++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Pcontrol(1);
        uint64_t begin = ticks();
        solve(value, first, last);
        times[repetition] = ticks_ns(ticks() - begin) * 1e-3;
        MPI_Pcontrol(0);
    }
    MPI_Allreduce(MPI_IN_PLACE, times, (int)repetitions, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    double own[POINTS] = {0}, worst = 0.0;
    memcpy(own + first, value + first, (size_t)(last - first) * sizeof *own);
    MPI_Allreduce(own, all, POINTS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int point = 1; point <= 5; point++) {
        worst = fmax(worst, fabs(all[point] - published[point - 1]));
        worst = fmax(worst, fabs(all[POINTS - 1 - point] - published[point - 1]));
    }
    struct result *result = result_new();
    struct row *row = result_row(result);
    row_integer(row, "ranks", program_ranks());
    row_figure(row, "time", "us", LOWER_IS_BETTER, summarize(times, (size_t)repetitions).median, repetitions);
    free(times);
    result_model(result, "none: 27 updates are negligible against the latency of their messages");
    for (int point = 1; point <= 5; point++)
        result_remark(result, "T(%d) = %.15f", point, all[point]);
    result_check(result, worst < 1e-15, "the published values to 15 digits", worst, 1e-15);
    return result_finish(result);
}
