/* The work that a kernel's model counts, and what the processor counted meanwhile, where the host allows it
 * (perf_event_open). For kernels whose `struct program` has `.work`. */
#ifndef PLUMB_KERNEL_WORK_H
#define PLUMB_KERNEL_WORK_H

enum counter { INSTRUCTIONS, CYCLES, CACHE_MISSES, COUNTERS };

struct work {
    double flop, bytes;       /* of all ranks, by the model; 0: the model counts none */
    double counted[COUNTERS]; /* of all threads of all ranks */
    long line_bytes;          /* of a cache line, 0 where a counted miss is not one of the last cache */
    char missing[128];        /* why nothing was counted, empty where it was */
};

/* Open the counters of the calling thread and of the threads that it starts from now on. They do not count
 * yet. */
void work_open(void);

/* Around each piece of work, outside of what is timed: the counters run in between. `flop` and `bytes` are
 * this rank's. */
void work_begin(void);
void work_end(double flop, double bytes);

/* Collective: the work and the counts of all ranks so far. */
struct work work_collect(void);

#endif
