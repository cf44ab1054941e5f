/* A thread on each core that is measured, and calls of a function by all of them at once. */
#ifndef PLUMB_CHECK_CREW_H
#define PLUMB_CHECK_CREW_H

#include "class.h"

#include <stdalign.h>
#include <stdbool.h>

/* What a thread works with, and what it found in the last call: on cache lines of its own. */
struct worker {
    alignas(128) int number;
    int cpu, numa;
    bool bound; /* to its CPU, and found running there after each call */
    double work, seconds;
    double extra; /* a second result */
    bool wrong;   /* a result that cannot be */
    double *memory;
};

/* Start a thread for each core of the class. Returns a CPU that cannot be used by this process, or -1. */
int crew_start(const struct class *class);

int crew_size(void);
struct worker *crew_worker(int number);

/* Call `function` in every thread, as nearly as can be at the same time; returns when all are done. */
void crew_call(void (*function)(struct worker *worker));

/* The worker of a CPU. */
struct worker *crew_on(int cpu);

/* A CPU whose thread was found elsewhere, or -1. */
int crew_astray(void);

#endif
