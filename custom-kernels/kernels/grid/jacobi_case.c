#include "jacobi_case.h"

#include "fail_together.h"
#include "hardware.h"
#include "jacobi_serial.h"
#include "program.h"
#include "timer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Updates that the serial solver does in about a second. */
enum { SERIAL_UPDATES = 1 << 25 };

const char *const boundary_names[] = {"periodic", "fixed", NULL};
struct jacobi_case problem = {.boundary = PERIODIC};

size_t case_edge(void) {
    double edge = cbrt(4.0 * (double)all_last_caches_bytes() / sizeof(double));
    return ((size_t)edge / 8 + 1) * 8;
}

static void take_points(const char *option, const struct sizes *sizes, long points[DIMENSIONS]) {
    if (sizes->count != 1 && sizes->count != DIMENSIONS)
        fail_together("%s: %d sizes given, it takes one or three", option, sizes->count);
    for (int d = 0; d < DIMENSIONS; d++)
        points[d] = (long)sizes->values[sizes->count == 1 ? 0 : d];
}

/* Weak scaling: the same box for each rank, z and then y split most. */
static void multiply(struct grid_plan *plan) {
    int parts[DIMENSIONS] = {0};
    take_points("--size-per-rank", &problem.per_rank, plan->points);
    MPI_Dims_create(program_ranks(), DIMENSIONS, parts);
    for (int d = 0; d < DIMENSIONS; d++) {
        plan->parts[d] = parts[DIMENSIONS - 1 - d];
        plan->points[d] *= plan->parts[d];
    }
}

static _Noreturn void too_small(const struct grid_plan *plan) {
    fail_together("a grid of %s points is smaller than its halo: %ld layers on %d ranks; choose more points, "
                  "fewer ranks or fewer layers",
                  case_size_text(plan), plan->depth, program_ranks());
}

static void require_room(const struct grid_plan *plan) {
    for (int d = 0; d < DIMENSIONS; d++) {
        bool own_halo = plan->periodic && !plan->wrap[d];
        long least = plan->parts[d] > 1 || own_halo ? plan->depth : 1;
        if (plan->points[d] / plan->parts[d] < least)
            too_small(plan);
    }
}

struct grid_plan case_plan(long depth, const bool wrap[DIMENSIONS]) {
    struct grid_plan plan = {.periodic = problem.boundary == PERIODIC, .depth = depth};
    memcpy(plan.wrap, wrap, sizeof plan.wrap);
    if (problem.per_rank.count)
        multiply(&plan);
    else
        take_points("--size", &problem.size, plan.points);
    double points = case_points(&plan);
    if (points * sizeof(double) > 1e15)
        fail_together("a grid of %s points does not fit any memory", case_size_text(&plan));
    if (!problem.per_rank.count && !split_ranks(plan.points, program_ranks(), depth, plan.parts))
        too_small(&plan);
    require_room(&plan);
    return plan;
}

bool case_serial(const struct grid_plan *plan) {
    return problem.verify || case_points(plan) * (double)(problem.sweeps + 1) <= SERIAL_UPDATES;
}

size_t case_serial_bytes(const struct grid_plan *plan) {
    return case_serial(plan) && program_rank() == 0 ? serial_bytes(plan->points) : 0;
}

const char *case_size_text(const struct grid_plan *plan) {
    static char text[80];
    snprintf(text, sizeof text, "%ldx%ldx%ld", plan->points[X], plan->points[Y], plan->points[Z]);
    return text;
}

double case_seconds(uint64_t begin) {
    return ranks_max(ticks_s(ticks() - begin));
}

double case_points(const struct grid_plan *plan) {
    return (double)plan->points[X] * (double)plan->points[Y] * (double)plan->points[Z];
}

static bool alike(const struct findings *a, const struct findings *b) {
    return a->checksum == b->checksum && a->residual == b->residual;
}

void agreement_add(struct agreement *agreement, const struct findings *findings) {
    if (agreement->solutions++ == 0)
        agreement->first = *findings;
    agreement->different += !alike(&agreement->first, findings);
    agreement->error = larger(agreement->error, findings->error);
}

static void check_serial(struct result *result, const struct grid_plan *plan,
                         const struct agreement *agreement) {
    struct findings serial = {0};
    if (program_rank() == 0)
        serial = serial_solve(plan->points, plan->periodic, problem.sweeps);
    MPI_Bcast(&serial, sizeof serial, MPI_BYTE, 0, MPI_COMM_WORLD);
    bool same = alike(&serial, &agreement->first);
    result_check(result, same, "same bits as the serial solver", same ? 0.0 : 1.0, 0.0);
}

void case_check(struct result *result, const struct grid_plan *plan, const struct agreement *agreement) {
    double tolerance = field_tolerance(problem.sweeps);
    result_check(result, agreement->error <= tolerance, "distance from the exact solution", agreement->error,
                 tolerance);
    result_check(result, agreement->different == 0, "solutions that differ in a bit",
                 (double)agreement->different, 0.0);
    if (case_serial(plan))
        check_serial(result, plan, agreement);
    else
        result_note(result, "not compared with the serial solver: the grid is large (--verify does it)");
    result_remark(result, "residual and checksum of %s %s points after %ld sweeps = %.17g, %016" PRIx64,
                  boundary_names[problem.boundary], case_size_text(plan), problem.sweeps,
                  agreement->first.residual, agreement->first.checksum);
}
