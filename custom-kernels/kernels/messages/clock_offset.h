/* How far one clock is ahead of another, from messages there and back: arithmetic only, no clock and no MPI.
 *
 * All times are in nanoseconds, each on the clock that is named. */
#ifndef PLUMB_CLOCK_OFFSET_H
#define PLUMB_CLOCK_OFFSET_H

/* One message to another clock and its answer. */
struct round_trip {
    double sent;   /* own clock, before the message left */
    double theirs; /* the other clock, between its arrival and the answer */
    double back;   /* own clock, after the answer came */
};

/* The other clock minus the own one at own time `at`: the truth lies within `value` +- `error`. */
struct offset {
    double at, value, error;
};

/* The offset by the shortest of `count` (at least 1) round trips. The other clock was read between `sent` and
 * `back`, so half of the trip bounds the error, however unequal the two ways are (Cristian, Distributed
 * Computing 3, 1989). */
struct offset offset_of(const struct round_trip *trips, int count);

/* A lower bound of the difference between two clocks that should be one: the largest time by which an answer
 * was read before its question was sent, or after it was back. 0: all readings can be of one clock. */
double out_of_order(const struct round_trip *trips, int count);

/* Offset and drift: the line through two offsets, `first.at` before `last.at`. Between them its error is at
 * most the larger of theirs as long as the drift is constant; beyond them it is a prediction. */
struct line {
    struct offset first, last;
};

/* The line through `last` with the least drift that both errors allow. It is meant for predictions, whose
 * error grows with the error of the drift. */
struct line line_ahead(struct offset first, struct offset last);

/* The offset at own time `at` and the bound of its error, in ns; the drift in parts per million. */
double line_at(const struct line *line, double at);
double line_error(const struct line *line);
double line_drift_ppm(const struct line *line);

#endif
