/* Arguments as integers, handles and sizes. An integer passed as such leaves the upper half of its word
 * undefined. */
#include <stdio.h>
#include <string.h>

#include "profile.h"

static uint64_t narrow(uint64_t handle) {
    return abi.handle == 4 ? (uint32_t)handle : handle;
}

/* Libraries whose handles are integers need no function for it. */
static uint64_t of_fortran(const char *kind, int number) {
    char name[32];
    if (abi.handle == 4)
        return (uint32_t)number;
    snprintf(name, sizeof name, "PMPI_%s_f2c", kind);
    any_function function = next_function(name);
    return function == NULL ? 0 : ((uint64_t (*)(int))function)(number);
}

static uint64_t handle_in(const struct arguments *arguments, int position, size_t index, const char *kind) {
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

uint64_t handle_behind(const struct arguments *arguments, int position, size_t index, const char *kind) {
    return handle_in(arguments, position, index, kind);
}

static uint64_t handle_of(const struct arguments *arguments, int position, const char *kind) {
    return arguments->form == FORTRAN_FORM ? handle_in(arguments, position, 0, kind)
                                           : narrow(arguments->at[position]);
}

uint64_t type_at(const struct arguments *arguments, int position) {
    return handle_of(arguments, position, "Type");
}

uint64_t comm_at(const struct arguments *arguments, int position) {
    return handle_of(arguments, position, "Comm");
}

uint64_t window_at(const struct arguments *arguments, int position) {
    return handle_of(arguments, position, "Win");
}

long long integer_behind(const struct arguments *arguments, int position, size_t index) {
    int number;
    const char *list = (const char *)(uintptr_t)arguments->at[position];
    memcpy(&number, list + index * sizeof number, sizeof number);
    return number;
}

long long integer_at(const struct arguments *arguments, int position) {
    return arguments->form == FORTRAN_FORM ? integer_behind(arguments, position, 0)
                                           : (int)arguments->at[position];
}

static long long count_at(const struct arguments *arguments, int position) {
    return arguments->form == LARGE_FORM ? (long long)arguments->at[position]
                                         : integer_at(arguments, position);
}

static long long count_in(const struct arguments *arguments, int position, size_t index) {
    long long number;
    if (arguments->form != LARGE_FORM)
        return integer_behind(arguments, position, index);
    memcpy(&number, (const char *)(uintptr_t)arguments->at[position] + index * sizeof number, sizeof number);
    return number;
}

static struct size {
    uint64_t type;
    int bytes;
    bool known;
} sizes[256];

static struct size *place_of(uint64_t type) {
    return &sizes[(type * 0x9E3779B97F4A7C15u) >> 56];
}

static long long size_of(uint64_t type) {
    struct size *place = place_of(type);
    if (!place->known || place->type != type) {
        int bytes = 0;
        ask(asked.Type_size, type, WORD(&bytes), 0, 0, 0);
        *place = (struct size){type, bytes > 0 ? bytes : 0, true};
    }
    return place->bytes;
}

void forget_type(uint64_t type) {
    place_of(type)->known = false;
}

static bool is_in_place(const struct arguments *arguments, int position) {
    uint64_t buffer = arguments->at[position];
    static const void *fortran;
    if (arguments->form != FORTRAN_FORM)
        return buffer == 1 || buffer == UINT64_MAX;
    if (fortran == NULL)
        fortran = library_variable("mpi_fortran_in_place_");
    return fortran != NULL && buffer == WORD(fortran);
}

static long long times(long long count, const struct arguments *arguments, int type) {
    return count > 0 ? count * size_of(type_at(arguments, type)) : 0;
}

static long long sum_of(const struct arguments *arguments, int count, int type, int ranks, bool types) {
    long long sum = 0, elements = 0;
    for (int rank = 0; rank < ranks; rank++) {
        long long number = count_in(arguments, count, (size_t)rank);
        elements += number;
        if (types && number > 0)
            sum += number * size_of(handle_in(arguments, type, (size_t)rank, "Type"));
    }
    return types ? sum : times(elements, arguments, type);
}

long long bytes_of(const struct call *call, const struct arguments *arguments, int rank, int ranks) {
    int count = call->count, type = call->type;
    bool in_place = call->role == COLLECTIVE && call->type2 != NO && call->type2 != call->type &&
                    is_in_place(arguments, count - 1);
    if (in_place) {
        count = call->count2;
        type = call->type2;
    }
    switch (call->shape) {
    case ONE:
        return times(1, arguments, type);
    case SOME:
        return times(count_at(arguments, count), arguments, type);
    case OWN:
        return times(in_place ? count_in(arguments, count, (size_t)rank) : count_at(arguments, count),
                     arguments, type);
    case LIST:
    case LISTS:
        return sum_of(arguments, count, type, ranks, call->shape == LISTS);
    default:
        return 0;
    }
}
