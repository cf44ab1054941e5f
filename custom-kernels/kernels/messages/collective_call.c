#include "collective_call.h"

#include "fail_together.h"
#include "first_touch.h"
#include "program.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ROOT = 0, REDUCED_VALUES = 7, MOVED_VALUES = 8191, TRIPS = 20 };

/* What a rank sends and receives: one block or one for every rank, on the root alone or on all. */
enum share { NOTHING, ONE_ON_ROOT, ONE_ON_ALL, MANY_ON_ROOT, MANY_ON_ALL };

static const struct facts {
    enum share gives, gets;
    bool in_place, reduces, displaced;
} facts[OPERATIONS] = {
    [BCAST] = {ONE_ON_ROOT, ONE_ON_ALL, false, false, false},
    [REDUCE] = {ONE_ON_ALL, ONE_ON_ROOT, true, true, false},
    [ALLREDUCE] = {ONE_ON_ALL, ONE_ON_ALL, true, true, false},
    [SCAN] = {ONE_ON_ALL, ONE_ON_ALL, true, true, false},
    [GATHER] = {ONE_ON_ALL, MANY_ON_ROOT, true, false, false},
    [GATHERV] = {ONE_ON_ALL, MANY_ON_ROOT, true, false, true},
    [SCATTER] = {MANY_ON_ROOT, ONE_ON_ALL, true, false, false},
    [SCATTERV] = {MANY_ON_ROOT, ONE_ON_ALL, true, false, true},
    [ALLGATHER] = {ONE_ON_ALL, MANY_ON_ALL, true, false, false},
    [ALLGATHERV] = {ONE_ON_ALL, MANY_ON_ALL, true, false, true},
    [ALLTOALL] = {MANY_ON_ALL, MANY_ON_ALL, true, false, false},
    [ALLTOALLV] = {MANY_ON_ALL, MANY_ON_ALL, true, false, true},
    [REDUCE_SCATTER] = {MANY_ON_ALL, ONE_ON_ALL, true, true, false},
    [REDUCE_SCATTER_BLOCK] = {MANY_ON_ALL, ONE_ON_ALL, true, true, false},
    [PINGPONG] = {ONE_ON_ALL, ONE_ON_ALL, false, false, false},
    [EXCHANGE] = {ONE_ON_ALL, ONE_ON_ALL, false, false, false},
    [BARRIER] = {NOTHING, NOTHING, false, false, false},
};

bool operation_in_place(enum operation operation) {
    return facts[operation].in_place;
}

bool operation_displaced(enum operation operation) {
    return facts[operation].displaced;
}

static bool many(enum share share) {
    return share == MANY_ON_ROOT || share == MANY_ON_ALL;
}

static size_t period(const struct facts *of) {
    return of->reduces ? REDUCED_VALUES : MOVED_VALUES;
}

/* Blocks of `share` on this rank. */
static int blocks(enum share share) {
    bool here = share == ONE_ON_ALL || share == MANY_ON_ALL || program_rank() == ROOT;
    return share == NOTHING || !here ? 0 : many(share) ? program_ranks() : 1;
}

/* Blocks of a buffer: enough for input and for output, because with MPI_IN_PLACE one buffer holds both. */
static size_t most_blocks(const struct facts *of) {
    return many(of->gives) || many(of->gets) ? (size_t)program_ranks() : of->gives != NOTHING;
}

/* Elements of a buffer: where blocks may lie apart, with one element behind each of them. */
static size_t room(enum operation operation, size_t elements) {
    return most_blocks(&facts[operation]) * (elements + facts[operation].displaced);
}

size_t operation_memory(enum operation operation, size_t bytes) {
    return 2 * room(operation, bytes / sizeof(float)) * sizeof(float);
}

struct call call_new(enum operation operation, bool in_place, bool gaps, size_t bytes) {
    size_t elements = bytes / sizeof(float), count = most_blocks(&facts[operation]);
    struct call call = {.operation = operation,
                        .in_place = in_place,
                        .elements = elements,
                        .stride = elements + (gaps && facts[operation].displaced),
                        .all = MPI_COMM_WORLD,
                        .trips = operation == PINGPONG ? TRIPS : 1};
    if (count * call.stride > INT_MAX)
        fail_together(
            "--bytes: blocks of %zu B for %zu ranks are more than MPI counts: choose a smaller size", bytes,
            count);
    size_t buffer = operation_memory(operation, bytes) / 2;
    memory_need(2 * buffer);
    call.send = memory_take(buffer + 1); /* a barrier has none */
    call.receive = memory_take(buffer + 1);
    call.counts = allocate(count, sizeof *call.counts);
    call.displacements = allocate(count, sizeof *call.displacements);
    for (size_t block = 0; block < count; block++) {
        call.counts[block] = (int)elements;
        call.displacements[block] = (int)(block * call.stride);
    }
    return call;
}

void call_free(struct call *call) {
    size_t buffer = operation_memory(call->operation, call->elements * sizeof(float)) / 2;
    memory_give_back(call->send, buffer + 1);
    memory_give_back(call->receive, buffer + 1);
    free(call->counts);
    free(call->displacements);
}

/* Element 0 of what rank `from` gives as its part number `part`; each next element is one larger, from 0
 * again at `period`. Small whole numbers: sums are exact. */
static size_t first_given(const struct facts *of, int from, int part, size_t elements, long round) {
    size_t place =
        of->reduces ? (size_t)from + (size_t)part * elements : 31 * (size_t)from + 17 * (size_t)part;
    return (place + (size_t)round) % period(of);
}

/* Whether this rank's input lies in its receive buffer. */
static bool input_in_place(const struct call *call) {
    enum share gets = facts[call->operation].gets;
    bool at_root = gets == ONE_ON_ROOT || gets == MANY_ON_ROOT;
    bool scatters = facts[call->operation].gives == MANY_ON_ROOT;
    return call->operation == BCAST || (call->in_place && !scatters && (!at_root || program_rank() == ROOT));
}

/* Whether this rank's result is left where it was: a scatter in place on the root. */
static bool output_stays(const struct call *call) {
    return call->in_place && facts[call->operation].gives == MANY_ON_ROOT && program_rank() == ROOT;
}

void call_prepare(const struct call *call, long round) {
    const struct facts *of = &facts[call->operation];
    size_t bytes = room(call->operation, call->elements) * sizeof(float);
    memset(call->receive, 0xff, bytes); /* no number: equal to nothing */
    memset(call->send, 0xff, bytes);
    bool inside = input_in_place(call);
    float *input = inside ? call->receive : call->send;
    if (inside && many(of->gets) && !many(of->gives))
        input += (size_t)program_rank() * call->stride;
    for (int part = 0; part < blocks(of->gives); part++) {
        float *block = input + (size_t)part * call->stride;
        size_t value = first_given(of, program_rank(), part, call->elements, round);
        for (size_t index = 0; index < call->elements; index++) {
            block[index] = (float)value;
            value = value + 1 < period(of) ? value + 1 : 0;
        }
    }
}

bool call_repeats(const struct call *call) {
    const struct facts *of = &facts[call->operation];
    bool moves_blocks = many(of->gives) && many(of->gets);
    return !call->in_place || !(of->reduces || moves_blocks);
}

/* This rank's partner in the operations between two: in the other half of the ranks. */
static int partner(void) {
    int half = program_ranks() / 2, rank = program_rank();
    return rank < half ? rank + half : rank < 2 * half ? rank - half : MPI_PROC_NULL;
}

static void there_and_back(const float *give, float *get, int count, MPI_Comm all) {
    int other = partner();
    if (other == MPI_PROC_NULL)
        return;
    bool begins = program_rank() < other;
    if (begins)
        MPI_Send(give, count, MPI_FLOAT, other, 0, all);
    MPI_Recv(get, count, MPI_FLOAT, other, 0, all, MPI_STATUS_IGNORE);
    if (!begins)
        MPI_Send(give, count, MPI_FLOAT, other, 0, all);
}

void call_make(const struct call *call) {
    int count = (int)call->elements;
    const int *counts = call->counts, *at = call->displacements;
    void *get = call->receive;
    const void *give = call->in_place && input_in_place(call) ? MPI_IN_PLACE : call->send;
    void *part = output_stays(call) ? MPI_IN_PLACE : get;
    MPI_Comm all = call->all;
    MPI_Datatype type = MPI_FLOAT;
    switch (call->operation) {
    case BCAST:
        MPI_Bcast(get, count, type, ROOT, all);
        break;
    case REDUCE:
        MPI_Reduce(give, get, count, type, MPI_SUM, ROOT, all);
        break;
    case ALLREDUCE:
        MPI_Allreduce(give, get, count, type, MPI_SUM, all);
        break;
    case SCAN:
        MPI_Scan(give, get, count, type, MPI_SUM, all);
        break;
    case GATHER:
        MPI_Gather(give, count, type, get, count, type, ROOT, all);
        break;
    case GATHERV:
        MPI_Gatherv(give, count, type, get, counts, at, type, ROOT, all);
        break;
    case SCATTER:
        MPI_Scatter(give, count, type, part, count, type, ROOT, all);
        break;
    case SCATTERV:
        MPI_Scatterv(give, counts, at, type, part, count, type, ROOT, all);
        break;
    case ALLGATHER:
        MPI_Allgather(give, count, type, get, count, type, all);
        break;
    case ALLGATHERV:
        MPI_Allgatherv(give, count, type, get, counts, at, type, all);
        break;
    case ALLTOALL:
        MPI_Alltoall(give, count, type, get, count, type, all);
        break;
    case ALLTOALLV:
        MPI_Alltoallv(give, counts, at, type, get, counts, at, type, all);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter(give, get, counts, type, MPI_SUM, all);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block(give, get, count, type, MPI_SUM, all);
        break;
    case PINGPONG:
        for (int trip = 0; trip < call->trips; trip++)
            there_and_back(give, get, count, all);
        break;
    case EXCHANGE:
        MPI_Sendrecv(give, count, type, partner(), 0, get, count, type, partner(), 0, all, MPI_STATUS_IGNORE);
        break;
    case BARRIER:
        MPI_Barrier(all);
        break;
    case OPERATIONS:
        break;
    }
}

/* of_value[v] is the result on this rank of an element that is v on rank 0: for a reduction the sum over the
 * ranks that take part in it, else v. */
static void results(const struct call *call, float *of_value) {
    const struct facts *of = &facts[call->operation];
    int last = call->operation == SCAN ? program_rank() : program_ranks() - 1;
    for (size_t value = 0; value < period(of); value++) {
        of_value[value] = of->reduces ? 0.0f : (float)value;
        for (int from = 0; of->reduces && from <= last; from++)
            of_value[value] += (float)((value + (size_t)from) % period(of));
    }
}

/* The rank that sends the one block that this rank receives. */
static int giver(const struct call *call) {
    return call->operation == PINGPONG || call->operation == EXCHANGE ? partner() : ROOT;
}

long call_faults(const struct call *call, long round) {
    const struct facts *of = &facts[call->operation];
    if (output_stays(call) || giver(call) == MPI_PROC_NULL)
        return 0;
    float of_value[MOVED_VALUES];
    results(call, of_value);
    int part = many(of->gives) ? program_rank() : 0;
    long faults = 0;
    for (int block = 0; block < blocks(of->gets); block++) {
        const float *got = call->receive + (size_t)block * call->stride;
        size_t value = first_given(of, of->reduces || !many(of->gets) ? giver(call) : block, part,
                                   call->elements, round);
        for (size_t index = 0; index < call->elements; index++) {
            faults += got[index] != of_value[value];
            value = value + 1 < period(of) ? value + 1 : 0;
        }
        bool free_behind = call->stride > call->elements || block + 1 == blocks(of->gets);
        if (of->displaced && many(of->gets) && free_behind)
            faults += got[call->elements] == got[call->elements];
    }
    return faults;
}
