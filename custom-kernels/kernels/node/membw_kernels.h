/* The loops of membw: what each does to the arrays, what it moves, and what it must leave behind. */
#ifndef PLUMB_MEMBW_KERNELS_H
#define PLUMB_MEMBW_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

/* Elements of one 4 KiB page: shares of threads are whole pages, so that the loops have no remainders. */
enum { PAGE_ELEMENTS = 512 };

enum kernel { COPY, SCALE, ADD, TRIAD, DAXPY, TRIAD5, STORE, LOAD, SUM, KERNELS };
enum array { A, B, C, D, E, ARRAYS };

struct kernel_facts {
    const char *name, *formula;
    int loads, stores; /* streams that are read, and written */
    int allocated;     /* written streams that a regular store reads into the cache first */
    int arrays;        /* this many arrays take part, the first ones */
};

extern const struct kernel_facts kernel_facts[KERNELS];

/* The arrays of one rank. */
struct arrays {
    double *at[ARRAYS];
};

/* What every element is set to before the first kernel. */
extern const double first_values[ARRAYS];

/* One kernel on elements [begin, end), multiples of PAGE_ELEMENTS, by the calling thread. SUM returns
 * its sum. */
double kernel_run(enum kernel kernel, bool streaming, const struct arrays *arrays, size_t begin, size_t end);

/* Apply a kernel to one element of each array, in plain C: what every element must become. */
void kernel_expect(enum kernel kernel, double *element);

#endif
