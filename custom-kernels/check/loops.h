/* The loops that are measured, compiled for several sets of instructions: the widest that the node has is
 * taken. */
#ifndef PLUMB_CHECK_LOOPS_H
#define PLUMB_CHECK_LOOPS_H

#include "membw_kernels.h"

struct loops {
    const char *name; /* of the instructions */
    bool streaming;   /* stores past the cache are offered */
    double (*kernel)(enum kernel kernel, bool streaming, const struct arrays *arrays, size_t begin,
                     size_t end);
    double (*fma)(long loops, double *sink);
    void (*expect)(enum kernel kernel, double *element);
    const double *begin; /* what each array is set to before the first kernel */
};

/* The loops for the processor that this runs on. */
const struct loops *loops_here(void);

#endif
