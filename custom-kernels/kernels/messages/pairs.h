/* What the parts of `pairs` share. */
#ifndef PLUMB_PAIRS_H
#define PLUMB_PAIRS_H

#include "pairs_class.h"
#include "result.h"
#include "warm_up.h"

#include <stdbool.h>
#include <stddef.h>

/* What a pair is measured with. */
struct exchange {
    size_t latency_bytes, bandwidth_bytes;
    long latency_repetitions,
        bandwidth_repetitions; /* round trips of a batch; 0: as many as take long enough */
    long batches;
    double warm_up_s;          /* of a pair and size at most */
    char *outgoing, *incoming; /* of the larger of the two sizes */
};

/* Half a round trip in us at either size; a pair has been measured if they are not 0. */
struct meeting {
    double small, large;
};

/* What this rank found in all of its meetings: messages that did not arrive as sent, and warm-ups. */
struct course {
    long wrong;
    struct warm_ups warm_ups;
};

/* Ping-pong with `partner`, which calls the same; `bytes` a message. The rank with the smaller number serves
 * and returns the median over the batches of half a round trip in us, the other one 0. */
double ping_pong(const struct exchange *exchange, int partner, size_t bytes, long repetitions,
                 struct course *course);

/* A matrix of meetings: that of ranks a < b is at [a * ranks + b]. */
struct matrix {
    int ranks;
    const char *mode;
    struct meeting *meetings;
    const struct place *places;
};

/* On rank 0: rows, hints and heat maps. At most `most_rows` pairs get their own row. */
void show_pairs(struct result *result, const struct matrix *matrix, const struct exchange *exchange,
                long most_rows);

#endif
