/* The functions of Fortran as Open MPI (PMPI_) and others (MPI_) make them, of the library in mpi.c. */
#include "fortran_names.h"
int NAME(LAYER, _Init)(int *, char ***), NAME(LAYER, _Finalize)(void);
void INIT(int *error) {
    *error = NAME(LAYER, _Init)(NULL, NULL);
}
void INIT_THREAD(const int *wanted, int *given, int *error) {
    *given = *wanted;
    *error = NAME(LAYER, _Init)(NULL, NULL);
}
void FINALIZE(int *error) {
    *error = NAME(LAYER, _Finalize)();
}
