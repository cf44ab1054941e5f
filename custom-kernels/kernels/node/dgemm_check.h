/* Matrices with random elements, and whether C is A B or a sum of such products. */
#ifndef PLUMB_DGEMM_CHECK_H
#define PLUMB_DGEMM_CHECK_H

#include "result.h"

#include <stdbool.h>
#include <stddef.h>

/* A (n x k), B (k x n) and C (n x n), each stored by columns without gaps. */
struct matrices {
    double *a, *b, *c;
    size_t n, k;
    bool update;   /* products are added to C */
    long products; /* computed so far */
};

/* A and B with elements in [-1/2, 1/2); C all zero for an update, else all NAN. */
struct matrices matrices_take(size_t n, size_t k, bool update);
void matrices_give_back(struct matrices *matrices);

/* Collective: add Freivalds' check (IFIP Congress 1977) of C = A B, or of C = `products` A B, to `result`:
 * the largest error of C x over all rows and ranks, relative to |A| |B| |x|. */
void matrices_check(struct result *result, const struct matrices *matrices);

#endif
