/* The GPUs of this node, measured by plumb-check-gpu, which lies beside this program. */
#ifndef PLUMB_CHECK_GPUS_H
#define PLUMB_CHECK_GPUS_H

#include "figures.h"

#define GPUS_PROGRAM "plumb-check-gpu"

/* The file of this name in the folder of this program. */
const char *beside(const char *name);

/* Whether the driver of GPUs that can be measured is loaded on this node. */
bool gpus_driven(void);

/* Start the program, which takes seconds to open the GPUs: call gpus_wait before the first round. */
void gpus_start(void);

/* Wait until it has opened them. */
void gpus_wait(void);

/* Measure the GPUs, one after another, into `round`: nothing where there are none. Returns a result that
 * cannot be, or NULL. */
const char *gpus_round(struct round *round);

/* Why rounds have no GPUs although they were started; NULL: they have. */
const char *gpus_without(void);

/* End the program and wait for its end. */
void gpus_end(void);

#endif
