/* The MPI library that this one is loaded before. Its PMPI_ functions are called, so that a call does not
 * go through another preloaded library, such as the witness. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"

struct abi abi;
struct asked asked;

static any_function found(const char *name) {
    char whole[64];
    snprintf(whole, sizeof whole, "PMPI_%s", name);
    return next_function(whole);
}

bool library_find(void) {
    any_function size = found("Comm_size");
    if (size == NULL)
        return false;
    abi = mpi_abi(size);
    if (abi.world == 0)
        return false;
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
