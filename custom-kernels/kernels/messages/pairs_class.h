/* Where every rank runs, and how far two of them are apart. */
#ifndef PLUMB_PAIRS_CLASS_H
#define PLUMB_PAIRS_CLASS_H

#include "distance.h"

enum { MOST_NODE_NAME = 64 };

struct place {
    char host[MOST_NODE_NAME];
    int node;  /* lowest rank on the same node */
    int bound; /* whether the rank may run on one core only */
    struct cpu cpu;
};

/* Collective: the places of all ranks. The caller frees them. */
struct place *places_collect(void);

/* The distance class, as plumb-bind names its placements: "pair:l3", "pair:node", ...; "same-cpu" where two
 * ranks share a CPU, "unbound" where one of them may run on several cores. */
const char *class_of(const struct place *a, const struct place *b);

#endif
