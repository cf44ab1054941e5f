/* A halo exchange between the ranks of a grid, counted and timed under a map from ranks to positions. */
#ifndef PLUMB_RANK_GRID_H
#define PLUMB_RANK_GRID_H

#include "rank_nodes.h"
#include "rank_order.h"

#include "warm_up.h"

#include <stddef.h>

/* Bytes sent to other nodes in one exchange: by all nodes, and by the node that sends most. */
struct traffic {
    double total, busiest_node;
};

/* Count the bytes of one exchange in which every rank sends `face` bytes to each neighbour. position_of[rank]
 * is the position of every rank. */
struct traffic count_traffic(const struct grid *grid, const struct nodes *nodes, const int *position_of,
                             size_t face);

/* The node-aware map with the least traffic: nested blocks where they tile the grid, the Hilbert curve, or
 * row-major order; each deals its positions to the ranks node by node. Fills `position_of`, returns the name
 * of the order. */
const char *map_node_aware(const struct grid *grid, const struct nodes *nodes, size_t face, int *position_of);

/* Collective: exchange faces of `face` bytes with all neighbours, warm up and then `repetitions` times. Fills
 * `times` (microseconds, the slowest rank's) and returns how many faces did not come from the neighbour
 * expected. */
long time_exchange(const struct grid *grid, const int *position_of, size_t face, long repetitions,
                   double *times, struct warm_ups *warm_ups);

#endif
