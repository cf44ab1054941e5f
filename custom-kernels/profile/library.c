/* The MPI library that this one stands in front of. Its PMPI_ functions are called, so that a call does not
 * go through another preloaded library, such as the witness. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"

struct abi abi;
struct asked asked;

static const struct abi mpich = {0x44000000, 0x4c00010d, 4, 20, 2, 3, 2, 1, 3};
static const struct abi standard = {0x101, 0x247, 8, 32, 0, 4096, 211, 212, 213};

static any_function found(const char *name) {
    char whole[64];
    snprintf(whole, sizeof whole, "PMPI_%s", name);
    return next_function(whole);
}

/* The linker may have moved a variable of a library into the program. */
void *library_variable(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    any_function next = address == NULL ? next_function(name) : NULL;
    if (next != NULL)
        memcpy(&address, &next, sizeof address);
    return address;
}

bool library_find(void) {
    const void *world = library_variable("ompi_mpi_comm_world"), *byte = library_variable("ompi_mpi_byte");
    const struct abi openmpi = {WORD(world), WORD(byte), 8, 24, 0, 3, 1, 2, 3};
    void *address;
    any_function size = found("Comm_size");
    memcpy(&address, &size, sizeof address);
    Dl_info where;
    if (size == NULL || dladdr(address, &where) == 0)
        return false;
    abi = strstr(where.dli_fname, "libmpi_abi") != NULL ? standard
          : world != NULL && byte != NULL               ? openmpi
                                                        : mpich;
#define ASKED_FIND(Name)                                                                                     \
    asked.Name = found(#Name);                                                                               \
    if (asked.Name == NULL)                                                                                  \
        return false;
    ASKED(ASKED_FIND)
    return true;
}

_Atomic any_function library_known[FORMS][CALLS];

any_function library_searched(enum call_id call, enum form form) {
    char name[64];
    if (form == FORTRAN_FORM)
        snprintf(name, sizeof name, "pmpi_%s_", calls[call].fortran);
    else
        snprintf(name, sizeof name, "PMPI_%s%s", calls[call].name, form == LARGE_FORM ? "_c" : "");
    any_function function = next_function(name);
    atomic_store_explicit(&library_known[form][call], function, memory_order_release);
    return function;
}

void library_replace(enum call_id call, any_function function) {
    atomic_store(&library_known[C_FORM][call], function);
}

int ask(any_function function, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
    return ((int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))function)(a, b, c, d, e);
}
