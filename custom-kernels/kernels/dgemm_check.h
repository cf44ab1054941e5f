/* Matrices with random elements, and whether C is A B. */
#ifndef PLUMB_DGEMM_CHECK_H
#define PLUMB_DGEMM_CHECK_H

#include "result.h"

#include <stddef.h>

/* Three n x n matrices, stored by columns. */
struct matrices {
    double *a, *b, *c;
    size_t n;
};

/* A and B with elements in [-1/2, 1/2), C all NAN. */
struct matrices matrices_take(size_t n);
void matrices_give_back(struct matrices *matrices);

/* Freivalds' check of C = A B: the largest error of C x over all rows and ranks, relative to |A| |B| |x|. */
void matrices_check(struct result *result, const struct matrices *matrices);

#endif
