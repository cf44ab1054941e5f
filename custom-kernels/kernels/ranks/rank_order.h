/* Orders in which the positions of a grid can be dealt to ranks. A position is its row-major index. */
#ifndef PLUMB_RANK_ORDER_H
#define PLUMB_RANK_ORDER_H

#include <stdbool.h>

enum { MOST_DIMENSIONS = 3 };

struct grid {
    int dimensions, count; /* count: product of the extents */
    int extent[MOST_DIMENSIONS];
    bool periodic;
};

void grid_coordinates(const struct grid *grid, int position, int *coordinates);
int grid_position(const struct grid *grid, const int *coordinates);

/* The neighbour in `direction` (2 d or 2 d + 1: down or up in dimension d); -1 beyond an open end. */
int grid_neighbour(const struct grid *grid, int position, int direction);

/* Positions along a Hilbert curve through the smallest cube of 2^k that holds the grid (J. Skilling, AIP
 * Conf. Proc. 707, 381, 2004), those outside the grid left out. `order` has grid->count elements. */
void order_hilbert(const struct grid *grid, int *order);

/* Positions block by block, each block of `ranks` positions as compact as the extents allow; false if no
 * block of that many positions tiles the grid. */
bool order_blocks(const struct grid *grid, int ranks, int *order);

#endif
