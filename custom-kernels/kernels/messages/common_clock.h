/* One clock for all ranks: the host's own where they share a host, a synchronised one between hosts. */
#ifndef PLUMB_COMMON_CLOCK_H
#define PLUMB_COMMON_CLOCK_H

/* Collective: find out which ranks read the same clock, and measure the offsets of the other clocks to rank
 * 0's. Ends all ranks with one line if ranks that should share a clock saw readings out of order. Takes 0.2 s
 * and the round trips if there are several clocks. End with clock_end. */
void clock_start(void);
void clock_end(void);

/* This rank's clock (CLOCK_MONOTONIC) now, in nanoseconds. */
double clock_now(void);

/* A reading of clock_now as time of the common clock in ns, predicted from the offsets so far: exact enough
 * to agree on a start. */
double clock_predicted(double own);

/* Collective: measure the offsets of the clocks before and after a batch of calls. */
void clock_before(void);
void clock_after(void);

/* A reading of clock_now that was taken between clock_before and clock_after as time of the common clock, in
 * ns. */
double clock_common(double own);

/* Collective, after clock_after: a bound of the error of a difference between two ranks' common times, in
 * nanoseconds. On one clock it is the cost of a reading; between clocks, the error bounds of their offsets
 * are added. */
double clock_error(void);

/* How many clocks the ranks have between them; 1: nothing had to be synchronised. */
int clock_count(void);

/* The largest drift of a clock against the one it was synchronised with that the offsets show beyond their
 * errors, in parts per million. Collective. */
double clock_drift_ppm(void);

#endif
