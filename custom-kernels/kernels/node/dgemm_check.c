#include "dgemm_check.h"

#include "fail_together.h"
#include "first_touch.h"
#include "hugepages.h"
#include "program.h"
#include "share.h"

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

static const double unit_roundoff = 0x1p-53;

/* A number in [-1/2, 1/2) for every index (SplitMix64: Steele, Lea, Flood, OOPSLA 2014). */
static double random_at(uint64_t index) {
    uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return (double)((bits ^ (bits >> 31)) >> 11) * 0x1p-53 - 0.5;
}

static size_t factor_bytes(size_t n, size_t k) {
    return n * k * sizeof(double);
}

struct matrices matrices_take(size_t n, size_t k, bool update) {
    size_t bytes = factor_bytes(n, k);
    struct matrices all = {memory_take_huge(bytes),
                           memory_take_huge(bytes),
                           memory_take_huge(factor_bytes(n, n)),
                           n,
                           k,
                           update,
                           0};
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (size_t i = 0; i < n * k; i++) {
            all.a[i] = random_at(i);
            all.b[i] = random_at(n * k + i);
        }
#pragma omp for schedule(static)
        for (size_t i = 0; i < n * n; i++)
            all.c[i] = update ? 0.0 : NAN;
    }
    return all;
}

void matrices_give_back(struct matrices *all) {
    memory_give_back(all->a, factor_bytes(all->n, all->k));
    memory_give_back(all->b, factor_bytes(all->n, all->k));
    memory_give_back(all->c, factor_bytes(all->n, all->n));
}

/* y = M x, or y = |M| x. */
static void apply(const double *matrix, size_t rows, size_t columns, const double *x, double *y,
                  bool absolute) {
#pragma omp parallel
    {
        struct share row = share_of(rows, 8, omp_get_thread_num(), omp_get_num_threads());
        for (size_t i = row.begin; i < row.end; i++)
            y[i] = 0.0;
        for (size_t j = 0; j < columns; j++)
            for (size_t i = row.begin; i < row.end; i++) {
                double element = matrix[j * rows + i];
                y[i] += (absolute ? fabs(element) : element) * x[j];
            }
    }
}

/* Scratch for the check: one vector after the other. */
enum { X, ABSOLUTE_X, B_X, A_B_X, C_X, BOUND_B, BOUND, VECTORS };

void matrices_check(struct result *result, const struct matrices *all) {
    const size_t n = all->n, k = all->k, longest = n > k ? n : k;
    const double times = all->update ? (double)all->products : 1.0;
    double *v[VECTORS], *memory = allocate(VECTORS * longest, sizeof *memory), worst = 0.0;
    for (int index = 0; index < VECTORS; index++)
        v[index] = memory + (size_t)index * longest;
    for (size_t i = 0; i < n; i++) {
        v[X][i] = random_at(2 * n * k + i);
        v[ABSOLUTE_X][i] = fabs(v[X][i]);
    }
    apply(all->b, k, n, v[X], v[B_X], false);
    apply(all->a, n, k, v[B_X], v[A_B_X], false);
    apply(all->c, n, n, v[X], v[C_X], false);
    apply(all->b, k, n, v[ABSOLUTE_X], v[BOUND_B], true);
    apply(all->a, n, k, v[BOUND_B], v[BOUND], true);
    for (size_t i = 0; i < n; i++) {
        double error = fabs(v[C_X][i] / times - v[A_B_X][i]) / v[BOUND][i];
        worst = error <= worst ? worst : error; /* a NAN stays */
    }
    free(memory);
    int wrong = isnan(worst), any;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    worst = ranks_max(worst);
    double tolerance = (2.0 * (double)n + 2.0 * (double)k + times + 3.0) * unit_roundoff;
    result_check(result, !any && worst <= tolerance, "C x against A (B x)", any ? NAN : worst, tolerance);
}
