/* Work that stays in registers, and whose result is known in advance. */
#ifndef PLUMB_OVERLAP_WORK_H
#define PLUMB_OVERLAP_WORK_H

#include <stddef.h>
#include <stdint.h>

/* `steps` steps of the linear congruential generator x -> a x + c (mod 2^64) from `state`: each waits for the
 * one before, so that no compiler or core shortens it, and no memory is touched. */
uint64_t work(uint64_t state, size_t steps);

/* The result of work(state, steps), by repeated squaring. Source: Brown, Random Number Generation with
 * Arbitrary Strides, Trans. Am. Nucl. Soc. 71, 1994. */
uint64_t work_expected(uint64_t state, size_t steps);

/* Time of a step in ns: the median of several timings; takes about 10 ms. */
double work_calibrate(void);

#endif
