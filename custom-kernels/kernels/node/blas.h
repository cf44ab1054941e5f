/* The BLAS that the build found: DGEMM by its Fortran name, which every BLAS has, and what the library
 * reports about itself. */
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

/* Make each call of DGEMM run on the calling thread only (OpenBLAS, MKL, BLIS). */
void blas_one_thread(void);

/* Name, version and build options of OpenBLAS or MKL; NULL for any other library. */
const char *blas_version(void);

/* The processor type whose kernels OpenBLAS uses on this host, by OpenBLAS's name; NULL for any other
 * library. */
const char *blas_kernels(void);

/* Doubles in a vector of the kernels that blas_kernels names; 0 if that is not known. */
int blas_lanes(void);

#endif
