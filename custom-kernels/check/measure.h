/* The rounds: each measures every figure once, in memory that is new for it. */
#ifndef PLUMB_CHECK_MEASURE_H
#define PLUMB_CHECK_MEASURE_H

#include "class.h"
#include "figures.h"

/* Why nothing can be measured here, or NULL: then the threads are there. `gpus`: whether rounds measure GPUs,
 * too. To be called once. */
const char *measure_start(const struct class *class, bool gpus);

/* Measure one round. Returns NULL, or what cannot be: a wrong result of a CPU or GPU, or a thread that was
 * moved. `wrong` says which of the two. */
const char *measure_round(struct round *round, bool *wrong);

#endif
