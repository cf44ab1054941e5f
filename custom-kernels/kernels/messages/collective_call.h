/* One collective operation on one message size: its data, the call, and whether every element arrived. */
#ifndef PLUMB_COLLECTIVE_CALL_H
#define PLUMB_COLLECTIVE_CALL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum operation {
    BCAST,
    REDUCE,
    ALLREDUCE,
    SCAN,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    PINGPONG, /* there and back between a rank and its partner in the other half, all pairs at once, the same
                 data again and again */
    EXCHANGE, /* both ways at once, the same pairs; of an odd number of ranks the last has none */
    BARRIER,
    OPERATIONS
};

/* Whether MPI defines MPI_IN_PLACE for the operation. */
bool operation_in_place(enum operation operation);

/* Whether the caller says where each block lies: the operations that end in v, apart from reduce_scatter. */
bool operation_displaced(enum operation operation);

/* Bytes of both buffers of a rank, for blocks of `bytes`. */
size_t operation_memory(enum operation operation, size_t bytes);

struct call {
    enum operation operation;
    bool in_place;
    size_t elements; /* of a block: what one rank gives one other, or the whole vector where there are no
                        parts */
    size_t stride;   /* elements from block to block */
    float *send, *receive;
    int *counts, *displacements;
    MPI_Comm all; /* MPI_COMM_WORLD, or one of its duplicates */
    int trips; /* round trips of a ping-pong in one call: the time of a call is that of all of them; else 1 */
};

/* Allocate the buffers of a call. `gaps`: one element is free between the blocks of an operation whose caller
 * says where they lie; others have none. `bytes` is a multiple of sizeof(float). Collective; ends all ranks if the
 * elements are more than MPI counts (INT_MAX) or do not fit into memory. Free with call_free. */
struct call call_new(enum operation operation, bool in_place, bool gaps, size_t bytes);
void call_free(struct call *call);

/* Fill this rank's input with the values of `round`, which differ from round to round, and everything else
 * with NAN. */
void call_prepare(const struct call *call, long round);

/* Whether a call leaves its input as it was: made again, it gives the same result. */
bool call_repeats(const struct call *call);

/* The MPI call alone. */
void call_make(const struct call *call);

/* The number of elements that this rank received and that are not those of `round`, plus the number of
 * elements that were written outside of the blocks. */
long call_faults(const struct call *call, long round);

#endif
