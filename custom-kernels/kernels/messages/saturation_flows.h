/* Messages of a rank to its partners: a window of them at a time, several windows in a row. */
#ifndef PLUMB_SATURATION_FLOWS_H
#define PLUMB_SATURATION_FLOWS_H

#include <stdbool.h>
#include <stddef.h>

enum { WINDOW = 16 };

/* What one thread exchanges with one other rank; `partner` < 0: nothing. */
struct flow {
    int partner, tag;
    bool sends, receives;
    unsigned char *out, *in; /* one message, and a window of them */
    long wrong;              /* messages that did not arrive as sent */
};

/* Exchange `windows` windows of messages of `bytes` over all `count` flows at the same time, from one thread.
 * A sender begins the next window when the receiver has all of the last one, so that none runs ahead. */
void flows_exchange(struct flow *flows, int count, size_t bytes, long windows);

/* Fill the message that is sent; check the messages of the last window received, and add the wrong ones to
 * `wrong`. */
void flow_fill(struct flow *flow, int sender, size_t bytes);
void flow_check(struct flow *flow, size_t bytes);

#endif
