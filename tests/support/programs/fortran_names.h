/* Names of Fortran by the end that a compiler gives them (SUFFIX), and of the functions of C that are called
 * (LAYER). */
#include <stddef.h>
#define JOIN(first, second) first##second
#define NAME(first, second) JOIN(first, second)
#define INIT NAME(mpi_init_, SUFFIX)
#define INIT_THREAD NAME(mpi_init_thread_, SUFFIX)
#define FINALIZE NAME(mpi_finalize_, SUFFIX)
