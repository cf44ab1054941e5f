/* What every counted call goes through. Inline, with the call and the form of its arguments known where it is
 * compiled: each entry point keeps its own case only. What is rare is a function elsewhere. */
#ifndef PLUMB_PROFILE_HOT_H
#define PLUMB_PROFILE_HOT_H

#include <stdatomic.h>
#include <string.h>

#include "profile.h"

#define HOT static inline __attribute__((always_inline))

HOT any_function library_function(enum call_id call, enum form form) {
    any_function function = atomic_load_explicit(&library_known[form][call], memory_order_acquire);
    return function != NULL ? function : library_searched(call, form);
}

/* Arguments. An integer passed as such leaves the upper half of its word undefined. */

HOT uint64_t handle_of(const struct arguments *arguments, int position, const char *kind) {
    if (arguments->form == FORTRAN_FORM)
        return handle_behind(arguments, position, 0, kind);
    uint64_t handle = arguments->at[position];
    return abi.handle == 4 ? (uint32_t)handle : handle;
}

HOT long long integer_behind(const struct arguments *arguments, int position, size_t index) {
    int number;
    const char *list = (const char *)(uintptr_t)arguments->at[position];
    memcpy(&number, list + index * sizeof number, sizeof number);
    return number;
}

HOT long long integer_at(const struct arguments *arguments, int position) {
    return arguments->form == FORTRAN_FORM ? integer_behind(arguments, position, 0)
                                           : (int)arguments->at[position];
}

HOT long long count_at(const struct arguments *arguments, int position) {
    return arguments->form == LARGE_FORM ? (long long)arguments->at[position]
                                         : integer_at(arguments, position);
}

HOT long long size_of(uint64_t type) {
    const struct size *place = size_place(type);
    return place->known && place->type == type ? place->bytes : size_asked(type);
}

HOT long long times(long long count, const struct arguments *arguments, int type) {
    return count > 0 ? count * size_of(handle_of(arguments, type, "Type")) : 0;
}

/* Bytes that this rank gives in `call`, or asks for; `ranks` is the number of counts in a list. */
HOT long long bytes_of(const struct call *call, const struct arguments *arguments, int rank, int ranks) {
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

/* Communicators. */

HOT int communicator_find(uint64_t key, bool window) {
    int guess = *communicator_guess(key);
    const struct communicator *one = &communicators[guess];
    return one->live && one->key == key && one->window == window ? guess : communicator_searched(key, window);
}

/* A rank's number in MPI_COMM_WORLD; -1: none (MPI_PROC_NULL), -2: it is not known. */
HOT int world_rank(int communicator, long long rank) {
    const struct communicator *one = &communicators[communicator];
    if (rank < 0)
        return -1;
    return one->world != NULL && rank < one->size && one->world[rank] >= 0 ? one->world[rank] : -2;
}

/* Sums. */

HOT struct cell *cell_of(int communicator, enum call_id call, long long bytes) {
    int bin = bytes > 0 ? 64 - __builtin_clzll((unsigned long long)bytes) : 0;
    return &cells[communicator][call][bin < BINS ? bin : BINS - 1];
}

HOT void cell_add(struct cell *cell, uint64_t ticks, long long bytes) {
    uint64_t size = bytes > 0 ? (uint64_t)bytes : 0;
    if (cell->count == 0 || ticks < cell->least_time)
        cell->least_time = ticks;
    if (cell->count == 0 || size < cell->least_bytes)
        cell->least_bytes = size;
    if (ticks > cell->most_time)
        cell->most_time = ticks;
    if (size > cell->most_bytes)
        cell->most_bytes = size;
    cell->count++;
    cell->time += ticks;
    cell->bytes += size;
}

HOT void sent(int world, long long bytes) {
    if (world >= 0 && world < world_size) {
        peers[world].sent_messages++;
        peers[world].sent_bytes += (uint64_t)bytes;
    } else if (world != -1) {
        peers_unknown++;
    }
}

#endif
