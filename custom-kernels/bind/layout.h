/* The result of every placement: one CPU for each thread of every rank. */
#ifndef PLUMB_LAYOUT_H
#define PLUMB_LAYOUT_H

#include "cputable.h"
#include "placement.h"

/* The question that a placement answers. */
struct request {
    const struct placement *placement;
    const struct machine *machine;
    const struct cpu_table *table;
    unsigned threads; /* per rank; 0: what fills the rank's object */
    unsigned ranks;   /* on the node; 0: as many as fit */
    bool ranks_known; /* false: `ranks` is only a lower bound, the launcher did not say more */
};

struct layout {
    unsigned ranks;
    unsigned threads;
    unsigned *cpu; /* OS index of thread t of rank r at [r * threads + t]; NULL for the placement none */
    struct device *device; /* of rank r at [r]; NULL: the placement chooses none */
};

/* An empty layout of `ranks` ranks with `threads` threads each. Free with free_layout. */
struct layout new_layout(unsigned ranks, unsigned threads);

void free_layout(struct layout *layout);

/* Give rank `rank` the first layout->threads CPUs of `os` (OS indices). */
void place_rank(struct layout *layout, unsigned rank, const unsigned *os);

/* Fail with "placement P: MESSAGE on TOPOLOGY". */
_Noreturn void cannot(const struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The number of ranks: those asked for, else `room`. Fails if more are asked than `room`, the number of
 * `things` that take one rank each. */
unsigned ranks_within(const struct request *request, size_t room, const char *things);

/* Fail if the launcher does not report the number of ranks on the node. `depends` ends the message: "...,
 * which DEPENDS on TOPOLOGY". */
void must_know_ranks(const struct request *request, const char *depends);

/* Threads per rank: those asked for, else `available`, the CPUs of the smallest object used. Fails if more
 * are asked than available, or if none are asked and the number of ranks is not known. `available` must not
 * depend on ranks that may exist beyond those known. */
unsigned threads_within(const struct request *request, size_t available, const char *things);

/* Fail unless at most one thread a rank is asked for. */
void single_thread(const struct request *request);

#endif
