/* The work that a kernel's model counts, and what the processor counted meanwhile, where the host lets a
 * program ask (perf_event_open). For kernels whose `struct program` says `.work`. */
#ifndef PLUMB_KERNEL_WORK_H
#define PLUMB_KERNEL_WORK_H

enum counter { INSTRUCTIONS, CYCLES, CACHE_MISSES, COUNTERS };

struct work {
    double flop, bytes;       /* of all ranks, by the model; 0: the model counts none */
    double counted[COUNTERS]; /* of all threads of all ranks */
    long line_bytes;          /* of a cache line, 0 where the host does not tell */
    char missing[128];        /* why nothing was counted, empty where it was */
};

/* Open the counters of the threads that the calling one starts from now on, and of itself. They stand still.
 */
void work_open(void);

/* Around each piece of work, outside of what is timed: the counters run in between. `flop` and `bytes` are
 * this rank's. */
void work_begin(void);
void work_end(double flop, double bytes);

/* Collective: everything so far. */
struct work work_collect(void);

#endif
