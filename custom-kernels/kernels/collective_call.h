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

/* Whether MPI has the operation in place. */
bool operation_in_place(enum operation operation);

/* How often a call does it: its time is that of all. */
int operation_repeats(enum operation operation);

/* Bytes of both buffers of a rank, for blocks of `bytes`. */
size_t operation_memory(enum operation operation, size_t bytes);

struct call {
    enum operation operation;
    bool in_place;
    size_t elements; /* of a block: what one rank gives one other, or the whole vector where there are no
                        parts */
    size_t stride;   /* from block to block: the operations that end in v leave one element out */
    float *send, *receive;
    int *counts, *displacements;
    MPI_Comm all; /* MPI_COMM_WORLD, or one of its duplicates */
};

/* Collective: too many elements for MPI's counts end all ranks. `bytes` is a multiple of sizeof(float). */
struct call call_new(enum operation operation, bool in_place, size_t bytes);
void call_free(struct call *call);

/* New values in what this rank gives, and no values in what it gets. Every `round` has others. */
void call_prepare(const struct call *call, long round);

/* The MPI call alone. */
void call_make(const struct call *call);

/* How many elements that this rank got are not those of `round`, and how many were written beside them. */
long call_faults(const struct call *call, long round);

#endif
