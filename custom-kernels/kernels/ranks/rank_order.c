#include "rank_order.h"

#include "fail_together.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void grid_coordinates(const struct grid *grid, int position, int *coordinates) {
    for (int dimension = grid->dimensions - 1; dimension >= 0; dimension--) {
        coordinates[dimension] = position % grid->extent[dimension];
        position /= grid->extent[dimension];
    }
}

int grid_position(const struct grid *grid, const int *coordinates) {
    int position = 0;
    for (int dimension = 0; dimension < grid->dimensions; dimension++)
        position = position * grid->extent[dimension] + coordinates[dimension];
    return position;
}

int grid_neighbour(const struct grid *grid, int position, int direction) {
    int coordinates[MOST_DIMENSIONS], dimension = direction / 2, extent = grid->extent[dimension];
    grid_coordinates(grid, position, coordinates);
    int moved = coordinates[dimension] + (direction % 2 ? 1 : -1);
    if (!grid->periodic && (moved < 0 || moved >= extent))
        return -1;
    coordinates[dimension] = (moved + extent) % extent;
    return grid_position(grid, coordinates);
}

/* Skilling's transform of coordinates of `bits` bits each into the transposed Hilbert index, in place. */
static void to_hilbert(unsigned *x, int bits, int dimensions) {
    for (unsigned q = 1u << (bits - 1); q > 1; q >>= 1)
        for (int i = 0; i < dimensions; i++) {
            if (x[i] & q)
                x[0] ^= q - 1;
            else {
                unsigned t = (x[0] ^ x[i]) & (q - 1);
                x[0] ^= t;
                x[i] ^= t;
            }
        }
    for (int i = 1; i < dimensions; i++)
        x[i] ^= x[i - 1];
    unsigned t = 0;
    for (unsigned q = 1u << (bits - 1); q > 1; q >>= 1)
        if (x[dimensions - 1] & q)
            t ^= q - 1;
    for (int i = 0; i < dimensions; i++)
        x[i] ^= t;
}

static uint64_t hilbert_index(const int *coordinates, int bits, int dimensions) {
    unsigned x[MOST_DIMENSIONS];
    for (int i = 0; i < dimensions; i++)
        x[i] = (unsigned)coordinates[i];
    to_hilbert(x, bits, dimensions);
    uint64_t index = 0;
    for (int bit = bits - 1; bit >= 0; bit--)
        for (int i = 0; i < dimensions; i++)
            index = index << 1 | (x[i] >> bit & 1);
    return index;
}

struct keyed {
    uint64_t key;
    int position;
};

static int by_key(const void *left, const void *right) {
    const struct keyed *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

void order_hilbert(const struct grid *grid, int *order) {
    struct keyed *keyed = allocate((size_t)grid->count, sizeof *keyed);
    int bits = 1, coordinates[MOST_DIMENSIONS];
    for (int dimension = 0; dimension < grid->dimensions; dimension++)
        while (1 << bits < grid->extent[dimension])
            bits++;
    for (int position = 0; position < grid->count; position++) {
        grid_coordinates(grid, position, coordinates);
        keyed[position] = (struct keyed){hilbert_index(coordinates, bits, grid->dimensions), position};
    }
    qsort(keyed, (size_t)grid->count, sizeof *keyed, by_key);
    for (int place = 0; place < grid->count; place++)
        order[place] = keyed[place].position;
    free(keyed);
}

/* Half the surface of a block, in faces. */
static long surface(const int *block, int dimensions) {
    long sum = 0;
    for (int skipped = 0; skipped < dimensions; skipped++) {
        long face = 1;
        for (int dimension = 0; dimension < dimensions; dimension++)
            face *= dimension == skipped ? 1 : block[dimension];
        sum += face;
    }
    return sum;
}

/* The block of `ranks` positions with the least surface whose edges divide the grid's; false if there is
 * none. */
static bool best_block(const struct grid *grid, int ranks, int *best) {
    int block[MOST_DIMENSIONS] = {1, 1, 1}, depth = grid->dimensions == 3 ? grid->extent[2] : 1;
    long least = -1;
    for (block[0] = 1; block[0] <= grid->extent[0]; block[0]++)
        for (block[1] = 1; block[1] <= grid->extent[1]; block[1]++)
            for (block[2] = 1; block[2] <= depth; block[2]++) {
                if ((long)block[0] * block[1] * block[2] != ranks || grid->extent[0] % block[0] ||
                    grid->extent[1] % block[1] || depth % block[2])
                    continue;
                long faces = surface(block, grid->dimensions);
                if (least < 0 || faces < least) {
                    least = faces;
                    memcpy(best, block, sizeof block);
                }
            }
    return least >= 0;
}

bool order_blocks(const struct grid *grid, int ranks, int *order) {
    int block[MOST_DIMENSIONS] = {1, 1, 1}, coordinates[MOST_DIMENSIONS];
    if (!best_block(grid, ranks, block))
        return false;
    struct keyed *keyed = allocate((size_t)grid->count, sizeof *keyed);
    for (int position = 0; position < grid->count; position++) {
        uint64_t outer = 0, inner = 0;
        grid_coordinates(grid, position, coordinates);
        for (int dimension = 0; dimension < grid->dimensions; dimension++) {
            outer = outer * (uint64_t)(grid->extent[dimension] / block[dimension]) +
                    (uint64_t)(coordinates[dimension] / block[dimension]);
            inner =
                inner * (uint64_t)block[dimension] + (uint64_t)(coordinates[dimension] % block[dimension]);
        }
        keyed[position] = (struct keyed){outer * (uint64_t)ranks + inner, position};
    }
    qsort(keyed, (size_t)grid->count, sizeof *keyed, by_key);
    for (int place = 0; place < grid->count; place++)
        order[place] = keyed[place].position;
    free(keyed);
    return true;
}
