/* The BLAS that the build found: DGEMM by its Fortran name, which every BLAS has, and what OpenBLAS tells of
 * itself. */
#ifndef PLUMB_KERNEL_BLAS_H
#define PLUMB_KERNEL_BLAS_H

#include <stddef.h>

/* Libraries in wheels put a prefix before every name (-DPLUMB_BLAS_SYMBOL_PREFIX=scipy_). */
#ifndef PLUMB_BLAS_SYMBOL_PREFIX
#define PLUMB_BLAS_SYMBOL_PREFIX
#endif
#define BLAS_JOIN(prefix, name) prefix##name
#define BLAS_EXPAND(prefix, name) BLAS_JOIN(prefix, name)
#define BLAS(name) BLAS_EXPAND(PLUMB_BLAS_SYMBOL_PREFIX, name)

/* C = alpha A B + beta C, matrices stored by columns, integers of 32 bits; the lengths of the two words are
 * Fortran's hidden arguments. */
void BLAS(dgemm_)(const char *transpose_a, const char *transpose_b, const int *m, const int *n, const int *k,
                  const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
                  const double *beta, double *c, const int *ldc, size_t length_a, size_t length_b);

/* Not every library has these: NULL then. */
void BLAS(openblas_set_num_threads)(int threads) __attribute__((weak));
char *BLAS(openblas_get_corename)(void) __attribute__((weak));
char *BLAS(openblas_get_config)(void) __attribute__((weak));
void MKL_Set_Num_Threads(int threads) __attribute__((weak));
void bli_thread_set_num_threads(ptrdiff_t threads) __attribute__((weak));

#endif
