/* An MPI library as a preloaded library sees it: what differs by binary interface. */
#ifndef PLUMB_MPI_LIBRARY_H
#define PLUMB_MPI_LIBRARY_H

#include <stdint.h>

#include "next_function.h"

struct abi {
    uint64_t world, byte;  /* MPI_COMM_WORLD, MPI_BYTE */
    unsigned handle;       /* bytes of a handle */
    unsigned status;       /* bytes of an MPI_Status */
    unsigned source;       /* which of its integers is MPI_SOURCE */
    int multiple;          /* MPI_THREAD_MULTIPLE */
    int cart, graph, dist; /* what MPI_Topo_test says */
};

#define WORD(pointer) ((uint64_t)(uintptr_t)(pointer))

/* A variable or function of the MPI library, as the program gets it; NULL: there is none of that name. */
void *mpi_variable(const char *name);
/* The binary interface of the library that `function` belongs to; all zero: it is not known. */
struct abi mpi_abi(any_function function);
/* The file that `function` was loaded from, by the name that the dynamic linker has for it; NULL: none. */
const char *mpi_file(any_function function);

#endif
