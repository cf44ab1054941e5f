/* Arguments that are lists, or behind pointers; sizes of types. */
#include <stdio.h>
#include <string.h>

#include "hot.h"

/* Libraries whose handles are integers need no function for it. */
static uint64_t of_fortran(const char *kind, int number) {
    char name[32];
    if (abi.handle == 4)
        return (uint32_t)number;
    snprintf(name, sizeof name, "PMPI_%s_f2c", kind);
    any_function function = next_function(name);
    return function == NULL ? 0 : ((uint64_t (*)(int))function)(number);
}

uint64_t handle_behind(const struct arguments *arguments, int position, size_t index, const char *kind) {
    const char *list = (const char *)(uintptr_t)arguments->at[position];
    int number;
    uint64_t handle = 0;
    if (arguments->form == FORTRAN_FORM) {
        memcpy(&number, list + index * sizeof number, sizeof number);
        return of_fortran(kind, number);
    }
    memcpy(&handle, list + index * abi.handle, abi.handle);
    return handle; /* of four bytes on a little-endian machine, else of eight */
}

long long count_in(const struct arguments *arguments, int position, size_t index) {
    long long number;
    if (arguments->form != LARGE_FORM)
        return integer_behind(arguments, position, index);
    memcpy(&number, (const char *)(uintptr_t)arguments->at[position] + index * sizeof number, sizeof number);
    return number;
}

struct size sizes[SIZES];

long long size_asked(uint64_t type) {
    int bytes = 0;
    ask(asked.Type_size, type, WORD(&bytes), 0, 0, 0);
    *size_place(type) = (struct size){type, bytes > 0 ? bytes : 0, true};
    return size_place(type)->bytes;
}

void forget_type(uint64_t type) {
    size_place(type)->known = false;
}

/* The address of Fortran's MPI_IN_PLACE, a variable: of that name in Open MPI; in MPICH and Intel MPI, whose
 * compilers may give it any name, in a pointer that the first call from Fortran sets. */
static const void *fortran_in_place(void) {
    static const void *variable;
    static void *const *pointer;
    static bool searched;
    if (!searched) {
        variable = mpi_variable("mpi_fortran_in_place_");
        pointer = mpi_variable("MPIR_F_MPI_IN_PLACE");
        searched = true;
    }
    return pointer != NULL ? *pointer : variable;
}

bool is_in_place(const struct arguments *arguments, int position) {
    uint64_t buffer = arguments->at[position];
    if (arguments->form != FORTRAN_FORM)
        return buffer == 1 || buffer == UINT64_MAX;
    return buffer != 0 && buffer == WORD(fortran_in_place());
}

long long sum_of(const struct arguments *arguments, int count, int type, int ranks, bool types) {
    long long sum = 0, elements = 0;
    for (int rank = 0; rank < ranks; rank++) {
        long long number = count_in(arguments, count, (size_t)rank);
        elements += number;
        if (types && number > 0)
            sum += number * size_of(handle_behind(arguments, type, (size_t)rank, "Type"));
    }
    return types ? sum : times(elements, arguments, type);
}
