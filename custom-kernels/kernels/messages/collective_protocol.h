/* How a timed call begins and what runs around it: what a call costs depends on it. */
#ifndef PLUMB_COLLECTIVE_PROTOCOL_H
#define PLUMB_COLLECTIVE_PROTOCOL_H

#include "collective_call.h"

enum protocol {
    COMMON_START,     /* from a start that all ranks agreed on */
    AFTER_BARRIER,    /* behind a barrier */
    LOOP,             /* one after the other, on the same buffers */
    CHANGING_BUFFERS, /* one after the other, each on the next of several pairs of buffers */
    WORK_BETWEEN,     /* one after the other; between them each rank works on its own data */
    WITH_GAPS,        /* one after the other, on the same buffers, with one element free between the blocks */
    PROTOCOLS
};

/* Whether the operation can be called so: only some have blocks that may lie apart. */
bool protocol_fits(enum protocol protocol, enum operation operation);

/* Whether a sample is several calls, one after the other. */
bool protocol_repeats(enum protocol protocol);

/* Samples of each size that do not count, before those that do. */
int protocol_warm_up(enum protocol protocol);

/* Pairs of buffers that the calls take in turn, for blocks of `bytes`. */
int protocol_buffers(enum protocol protocol, enum operation operation, size_t bytes);

/* What is carried from sample to sample of one size: times of the common clock, in ns. `start`: the agreed
 * start, or, where there is none, when the last rank was ready. `calls`: of a sample;
 * the ranks do not leave a barrier together, and more calls make that a smaller part of their time. */
struct agreed {
    double start, lead, work;
    int calls;
    bool grows, missed; /* grows: `calls` is to be agreed on after this sample */
};

/* For the first sample of a size. */
struct agreed agreed_new(enum protocol protocol);

/* Make one sample with `calls`, one for each pair of buffers, on data of `round`. *begin and *end are
 * readings of this rank's clock: of the sample's only call, or so far apart as this rank's calls took
 * together. Returns the number of wrong elements on this rank. Collective. */
long protocol_sample(enum protocol protocol, struct call *calls, long round, struct agreed *agreed,
                     double *begin, double *end);

/* The time of one of the `calls` of a sample, in ns, from the earliest begin, the latest end and the longest
 * time of a rank. */
double protocol_time(enum protocol protocol, int calls, double first, double last_end, double longest);

#endif
