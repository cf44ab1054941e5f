#include "mpi_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct abi mpich = {0x44000000, 0x4c00010d, 4, 20, 2, 3, 2, 1, 3};
static const struct abi standard = {0x101, 0x247, 8, 32, 0, 4096, 211, 212, 213};

/* The linker may have moved a variable of a library into the program. */
void *mpi_variable(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    any_function next = address == NULL ? next_function(name) : NULL;
    if (next != NULL)
        memcpy(&address, &next, sizeof address);
    return address;
}

const char *mpi_file(any_function function) {
    void *address;
    memcpy(&address, &function, sizeof address);
    Dl_info where;
    return function != NULL && dladdr(address, &where) != 0 ? where.dli_fname : NULL;
}

/* Asked of the file itself: another library of the process, which is not used, may have the name too. */
static bool defines(const char *file, const char *name) {
    void *scope = file == NULL ? NULL : dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    bool found = dlsym(scope != NULL ? scope : RTLD_DEFAULT, name) != NULL;
    if (scope != NULL)
        dlclose(scope);
    return found;
}

struct abi mpi_abi(any_function function) {
    const char *file = mpi_file(function);
    const void *world = mpi_variable("ompi_mpi_comm_world"), *byte = mpi_variable("ompi_mpi_byte");
    const struct abi openmpi = {WORD(world), WORD(byte), 8, 24, 0, 3, 1, 2, 3}, unknown = {0};
    if (file != NULL && strstr(file, "libmpi_abi") != NULL)
        return standard;
    if (byte != NULL && defines(file, "ompi_mpi_comm_world"))
        return openmpi;
    return defines(file, "MPIR_Dup_fn") ? mpich : unknown; /* what mpi.h of MPICH calls MPI_DUP_FN */
}
