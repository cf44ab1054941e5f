/* The rank that a call of MPI waits for. These functions replace and call those that wait for one other
 * rank. They note peer and tag in a variable of the thread and jump to the library, so that waiting.c can
 * name them if the call never returns.
 *
 * One binary serves all libraries: ranks, tags and counts are numbers in each, and a handle, which is an int
 * in one and a pointer in another, is passed on as the register or word of the stack that it came in.
 *
 * The forms for large counts (MPI_Send_c) are not wrapped: mpi4py asks the dynamic linker for them, and would
 * find them here with libraries that have none. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "witness.h"

static __thread struct call last;

const struct call *calls_last(const char *function) {
    return last.function != NULL && !strcmp(last.function, function) ? &last : NULL;
}

/* Function NAME, whose arguments TO and FROM are the peers. Its first call finds the library's function; the
 * others are a few stores and a jump (1.3 ns, MPI_Sendrecv 3.3 ns on a Xeon with AMX). */
#define IN_FRONT_OF(NAME, PARAMETERS, ARGUMENTS, TO, FROM)                                                   \
    typedef int(*NAME##_function) PARAMETERS;                                                                \
    static int NAME##_first PARAMETERS;                                                                      \
    static _Atomic NAME##_function NAME##_real = NAME##_first;                                               \
    static int NAME##_first PARAMETERS {                                                                     \
        any_function found = library_function(#NAME);                                                        \
        if (found == NULL)                                                                                   \
            return 1;                                                                                        \
        atomic_store_explicit(&NAME##_real, (NAME##_function)found, memory_order_relaxed);                   \
        return ((NAME##_function)found)ARGUMENTS;                                                            \
    }                                                                                                        \
    EXPORT int NAME PARAMETERS;                                                                              \
    int NAME PARAMETERS {                                                                                    \
        last = (struct call){#NAME, TO, FROM};                                                               \
        return atomic_load_explicit(&NAME##_real, memory_order_relaxed) ARGUMENTS;                           \
    }

#define NOBODY {0, 0, 0}
#define PEER(RANK, TAG) {1, RANK, TAG}
#define SENDS(NAME)                                                                                          \
    IN_FRONT_OF(NAME, (void *data, intptr_t count, void *type, int to, int tag, void *comm),                 \
                (data, count, type, to, tag, comm), PEER(to, tag), NOBODY)
#define RECEIVES(NAME)                                                                                       \
    IN_FRONT_OF(NAME, (void *data, intptr_t count, void *type, int from, int tag, void *comm, void *status), \
                (data, count, type, from, tag, comm, status), NOBODY, PEER(from, tag))
#define DOES_BOTH(NAME)                                                                                      \
    IN_FRONT_OF(NAME,                                                                                        \
                (void *out, intptr_t out_count, void *out_type, int to, int out_tag, void *in,               \
                 intptr_t in_count, void *in_type, int from, int in_tag, void *comm, void *status),          \
                (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status),  \
                PEER(to, out_tag), PEER(from, in_tag))
#define REPLACES(NAME)                                                                                       \
    IN_FRONT_OF(NAME,                                                                                        \
                (void *data, intptr_t count, void *type, int to, int out_tag, int from, int in_tag,          \
                 void *comm, void *status),                                                                  \
                (data, count, type, to, out_tag, from, in_tag, comm, status), PEER(to, out_tag),             \
                PEER(from, in_tag))

SENDS(MPI_Send)
SENDS(MPI_Ssend)
SENDS(MPI_Rsend)
RECEIVES(MPI_Recv)
DOES_BOTH(MPI_Sendrecv)
REPLACES(MPI_Sendrecv_replace)
IN_FRONT_OF(MPI_Probe, (int from, int tag, void *comm, void *status), (from, tag, comm, status), NOBODY,
            PEER(from, tag))
