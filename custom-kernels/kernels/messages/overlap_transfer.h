/* One large message, its start and its end apart, with work between them. */
#ifndef PLUMB_OVERLAP_TRANSFER_H
#define PLUMB_OVERLAP_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the library is given a chance to continue with the message during the work. */
enum method { METHOD_NONE, METHOD_TEST, METHOD_THREAD, METHOD_TASK };

/* Which call rank 0 makes. */
enum direction { ISEND, IRECV };

struct transfer {
    enum method method;
    enum direction direction;
    size_t words, steps; /* of the message (8 bytes), of the work */
    size_t test_steps;   /* METHOD_TEST: work between two calls of MPI_Test */
    uint64_t *buffer;
    uint64_t number;     /* of the message: part of its content */
    long wrong_messages; /* on this rank */
    long wrong_works;    /* works with a wrong result, counted for each thread */
};

/* Both ranks: one message from rank 0 to rank 1 (ISEND) or back, with the work on rank 0 if `with_work`.
 * Returns the time of start, work and end in us on rank 0, 0 on rank 1. The whole content is checked if
 * `thoroughly`, else a word of every page. */
double transfer_message(struct transfer *transfer, bool with_work, bool thoroughly);

/* Rank 0: the time of the work alone, by the same threads, in us. */
double transfer_work_only(struct transfer *transfer);

/* Fill the buffer: content that does not change from message to message. */
void transfer_fill(struct transfer *transfer);

#endif
