/* How far two CPUs of one node are apart. */
#ifndef PLUMB_DISTANCE_H
#define PLUMB_DISTANCE_H

#include "cputable.h"

/* The level of the smallest object that both CPUs are in. Equal objects count as the smaller level. Across
 * packages it is the machine, whatever else spans them (one NUMA node on a machine with uniform memory). */
enum level smallest_common_level(const struct cpu *a, const struct cpu *b);

/* The placement of two ranks at that distance: "pair:smt", "pair:l3", ... */
const char *pair_class(enum level level);

#endif
