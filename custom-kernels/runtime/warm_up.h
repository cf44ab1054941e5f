/* Warm-up until what is timed repeats itself.
 *
 * A library's first messages are not like the later ones: it makes connections, and touches its memory for
 * the first time (Intel MPI: in the first 500 round trips of each pair of ranks). A warm-up is a number of
 * batches of calls. There are 64 of them at most: when all are taken, two become one and later batches have
 * twice the calls, so the newer half is always half of what was done. It ends after 5 ms at the earliest,
 * when in the newer half
 *   - a call takes as long in the last quarter as in the one before: the interval of the median of their
 * ratios (95 %, sign test) reaches into 1 +- 2 %. That is the test of Cox and Stuart, Biometrika 42 (1955)
 * 80, and a size.
 *   - page faults, at 1 us each, take less than 1 % of the time. So a slow start that lasts, without a trend,
 * is seen. The bound is a time. A warm-up that ends by it is unsteady, unless a call takes so long that there
 * are too few batches to tell (less than 24). */
#ifndef PLUMB_KERNEL_WARM_UP_H
#define PLUMB_KERNEL_WARM_UP_H

#include "result.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { WARM_UP_BATCHES = 64 };

/* Time and page faults of a batch. */
struct batch {
    double ns, faults;
};

struct warm_up {
    long calls; /* of the batch that comes next */
    bool over, unsteady;
    double change;    /* of the time of a call between the last two quarters, as a part of it */
    double faults;    /* page faults of a call in the newer half, where they are too many; else 0 */
    double call_ns;   /* median over the newer half */
    double passed_ns; /* in all batches */
    /* its own: */
    bool begun;
    double least_ns, most_ns;
    int count;
    struct batch batches[WARM_UP_BATCHES], begin;
};

/* Seconds that are enough for the warm-up of messages in shared memory. */
#define WARM_UP_S 0.1

/* A warm-up of at most `most_s` seconds, a batch at least. */
struct warm_up warm_up_new(double most_s);

/* while (warm_up_next(&warm_up, comm))
 *     make warm_up.calls calls;
 * Collective: the slowest rank counts, so all ranks take the same number of batches. */
bool warm_up_next(struct warm_up *warm_up, MPI_Comm comm);

/* The same in steps, until `over`, for two ranks without a communicator: what this rank took since the begin
 * is warm_up_taken, what they agree on is added. */
void warm_up_begin(struct warm_up *warm_up);
struct batch warm_up_taken(const struct warm_up *warm_up);
void warm_up_add(struct warm_up *warm_up, struct batch batch);

/* What the warm-ups of a program came to: how many, how many unsteady, and what the worst of these has. */
struct warm_ups {
    long all, unsteady;
    double change, faults, passed_ns;
};
void warm_ups_count(struct warm_ups *warm_ups, const struct warm_up *warm_up);

/* A remark with its likely cause if one was unsteady. */
void warm_ups_remark(struct result *result, const struct warm_ups *warm_ups);

#endif
