/* Ping-pong of one message or of several small ones between two ranks, by the place of the MPI calls. */
#ifndef PLUMB_THREADED_MESSAGES_H
#define PLUMB_THREADED_MESSAGES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* Where the MPI calls are made. */
enum mode { MODE_SERIAL, MODE_ONE, MODE_ORDERED, MODE_CONCURRENT, MODE_PARTITIONED, MODES };

struct exchange {
    enum mode mode;
    int threads, messages;
    size_t words; /* of each message, 8 bytes each */
    double *outgoing, *incoming;
    double *times;           /* of each message: round trip in us, on rank 0 */
    long number;             /* of the exchange: part of the content */
    long wrong;              /* messages that did not arrive as sent, on this rank */
    MPI_Request requests[2]; /* MODE_PARTITIONED: send, receive */
};

/* Whether header and library have partitioned communication (MPI 4.0, chapter 4). */
bool partitioned_possible(void);

/* Before and after all exchanges of one kind: make and free the persistent requests of MODE_PARTITIONED. */
void exchange_begin(struct exchange *exchange);
void exchange_end(struct exchange *exchange);

/* Both ranks: fill, exchange, check. Returns the time of the round trip of all messages in us, valid on rank
 * 0. */
double exchange_once(struct exchange *exchange);

/* Both ranks: rank 0 broadcasts `value`, outside of a parallel region or, with `threads` > 0, by thread 0
 * inside one. The time in us on this rank; `value` is what arrived. */
double broadcast_once(int threads, int *value);

#endif
