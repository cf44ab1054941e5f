/* What the Jacobi kernels share: the options of the problem, its decomposition, its timing and its checks. */
#ifndef PLUMB_JACOBI_CASE_H
#define PLUMB_JACOBI_CASE_H

#include "arguments.h"
#include "jacobi_grid.h"
#include "result.h"

enum { PERIODIC, FIXED };

struct jacobi_case {
    struct sizes size, per_rank;
    int boundary;
    long sweeps, repetitions;
    bool verify;
};

extern struct jacobi_case problem;
extern const char *const boundary_names[];

/* Rows of the table of options. */
#define CASE_ARGUMENTS                                                                                       \
    {"--size", ARGUMENT_SIZES, &problem.size, 1, 1e6, NULL, "points of the grid: N, or NX,NY,NZ"},           \
        {"--size-per-rank",                                                                                  \
         ARGUMENT_SIZES,                                                                                     \
         &problem.per_rank,                                                                                  \
         1,                                                                                                  \
         1e6,                                                                                                \
         NULL,                                                                                               \
         "points of each rank (weak scaling) instead of --size; empty: not used"},                           \
        {"--boundary", ARGUMENT_CHOICE, &problem.boundary, 0, 0, boundary_names, "what lies at the ends"},   \
        {"--sweeps", ARGUMENT_INTEGER, &problem.sweeps, 1, 1e6, NULL, "sweeps of one solution"},             \
        {"--repetitions",                                                                                    \
         ARGUMENT_INTEGER,                                                                                   \
         &problem.repetitions,                                                                               \
         1,                                                                                                  \
         1e6,                                                                                                \
         NULL,                                                                                               \
         "solutions of each kind, one kind after the other; the best one counts"},                           \
        {"--verify",                                                                                         \
         ARGUMENT_FLAG,                                                                                      \
         &problem.verify,                                                                                    \
         0,                                                                                                  \
         0,                                                                                                  \
         NULL,                                                                                               \
         "compare with the serial solver also where that takes long"}

/* Edge of the cube whose array is four times as large as all last-level caches together, a multiple of 8. */
size_t case_edge(void);

/* Points, parts and boundary for halos of `depth` layers; `wrap` as in grid_plan. Ends all ranks with one
 * line if the grid is smaller than its halos. */
struct grid_plan case_plan(long depth, const bool wrap[DIMENSIONS]);

/* Whether the serial solver is run, and the bytes that it takes on this rank. */
bool case_serial(const struct grid_plan *plan);
size_t case_serial_bytes(const struct grid_plan *plan);

/* "NXxNYxNZ". */
const char *case_size_text(const struct grid_plan *plan);

/* Collective: the largest of the ranks' seconds since `begin`. */
double case_seconds(uint64_t begin);

/* Points of the whole grid. */
double case_points(const struct grid_plan *plan);

/* The solutions so far: `different` of them differ from the first in some bit; `error` is the largest
 * distance from the exact solution. */
struct agreement {
    struct findings first;
    long solutions, different;
    double error;
};

/* Add one solution. */
void agreement_add(struct agreement *agreement, const struct findings *findings);

/* Collective: the checks of all solutions: alike, close to the exact one, the same bits as the serial
 * solver's. */
void case_check(struct result *result, const struct grid_plan *plan, const struct agreement *agreement);

#endif
