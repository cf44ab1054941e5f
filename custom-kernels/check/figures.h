/* What a round measures: one value of each figure. */
#ifndef PLUMB_CHECK_FIGURES_H
#define PLUMB_CHECK_FIGURES_H

#include <stdbool.h>

enum figure {
    MEMORY,         /* triad of all cores together */
    MEMORY_NUMA,    /* the slowest NUMA node in it */
    CACHE,          /* loads from what a core has of the caches, all cores together */
    CACHE_CORE,     /* the slowest core in it */
    FMA,            /* multiply-adds between registers, all cores together */
    FMA_CORE,       /* the slowest core in it */
    CLOCK,          /* the median core's clock between the multiply-adds */
    CLOCK_CORE,     /* the slowest core's */
    HANDOVER,       /* time to hand a cache line over, the median of pairs of neighbours */
    HANDOVER_PAIR,  /* the slowest pair's */
    NEIGHBOUR,      /* bandwidth of reading what the neighbour has written, the median pair's */
    NEIGHBOUR_PAIR, /* the slowest pair's */
    GPU_IN,         /* copies to the slowest GPU, from pinned memory near it */
    GPU_OUT,        /* copies from the slowest GPU */
    GPU_MEMORY,     /* triad in the memory of the slowest GPU */
    FIGURES
};

struct figure_facts {
    const char *name, *unit;
    bool higher;       /* is better */
    const char *place; /* what the numbers of a reading's place are */
};

extern const struct figure_facts figure_facts[FIGURES];

/* The figure with this name; FIGURES if there is none. */
enum figure figure_named(const char *name);

/* One value, and the CPUs (or the NUMA node, or the GPU) that it is of: -1 where it is of all. */
struct reading {
    bool known;
    double value;
    int place[2];
};

/* One round. `others`: CPUs that other processes used on average while it ran. */
struct round {
    struct reading of[FIGURES];
    double others;
};

/* More CPUs in use by others than this: the round's values are not of the node alone. */
#define MOST_OTHERS 0.25
/* Rounds of the longest budget. */
enum { MOST_ROUNDS = 1001 };

#endif
