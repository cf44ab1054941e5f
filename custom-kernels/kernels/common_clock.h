/* One clock for all ranks: the host's own where they share a host, a synchronised one between hosts. */
#ifndef PLUMB_COMMON_CLOCK_H
#define PLUMB_COMMON_CLOCK_H

/* Collective: find out which ranks read the same clock, and synchronise the others with rank 0's. Ranks that
 * should share a clock and saw readings out of order end all ranks with one line. */
void clock_start(void);
void clock_end(void);

/* This rank's clock (CLOCK_MONOTONIC) now, in nanoseconds. */
double clock_now(void);

/* A reading of clock_now as time of the common clock, by what is known so far: good enough to agree on a
 * start. */
double clock_predicted(double own);

/* Collective: offsets are measured before and after a batch of calls ... */
void clock_before(void);
void clock_after(void);

/* ... and a reading of clock_now taken between them is turned into common time. */
double clock_common(double own);

/* Collective, after clock_after: a bound of the error of a difference between two ranks' common times, in
 * nanoseconds. On one clock it is the cost of a reading; between clocks, what the round trips leave open,
 * too. */
double clock_error(void);

/* How many clocks the ranks have between them; 1: nothing had to be synchronised. */
int clock_count(void);

/* The largest drift of a clock against the one it was synchronised with that the offsets show beyond their
 * errors, in parts per million. Collective. */
double clock_drift_ppm(void);

#endif
