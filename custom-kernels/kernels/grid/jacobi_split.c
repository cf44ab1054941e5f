#include "jacobi_split.h"

#include "share.h"

#include <limits.h>

/* Reading a tile from memory takes the first stage as long as this many more levels (measured on Zen 4).
 */
enum { MEMORY_LEVELS = 2 };

struct range split_range(long points, int parts, int part) {
    struct share share = share_of((size_t)points, 1, part, parts);
    return (struct range){(long)share.begin, (long)share.end};
}

long split_surface(const long points[DIMENSIONS], const int parts[DIMENSIONS]) {
    long size[DIMENSIONS], surface = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        size[d] = (points[d] + parts[d] - 1) / parts[d];
    for (int d = 0; d < DIMENSIONS; d++)
        if (parts[d] > 1)
            surface += 2 * size[(d + 1) % DIMENSIONS] * size[(d + 2) % DIMENSIONS];
    return surface;
}

static bool roomy(const long points[DIMENSIONS], const int parts[DIMENSIONS], long least) {
    for (int d = 0; d < DIMENSIONS; d++)
        if (points[d] / parts[d] < (parts[d] > 1 ? least : 1))
            return false;
    return true;
}

bool split_ranks(const long points[DIMENSIONS], int ranks, long least, int parts[DIMENSIONS]) {
    long smallest = LONG_MAX;
    for (int z = ranks; z >= 1; z--) {
        if (ranks % z)
            continue;
        for (int y = ranks / z; y >= 1; y--) {
            const int candidate[DIMENSIONS] = {ranks / z / y, y, z};
            if (ranks / z % y || !roomy(points, candidate, least) ||
                split_surface(points, candidate) >= smallest)
                continue;
            smallest = split_surface(points, candidate);
            for (int d = 0; d < DIMENSIONS; d++)
                parts[d] = candidate[d];
        }
    }
    return smallest < LONG_MAX;
}

void split_place(const int parts[DIMENSIONS], int rank, int place[DIMENSIONS]) {
    for (int d = 0; d < DIMENSIONS; d++) {
        place[d] = rank % parts[d];
        rank /= parts[d];
    }
}

int split_neighbour(const int parts[DIMENSIONS], const int place[DIMENSIONS], int dimension, enum side side,
                    bool periodic) {
    int there[DIMENSIONS] = {place[X], place[Y], place[Z]};
    there[dimension] += side == LOW ? -1 : 1;
    if (there[dimension] < 0 || there[dimension] >= parts[dimension]) {
        if (!periodic)
            return -1;
        there[dimension] = (there[dimension] + parts[dimension]) % parts[dimension];
    }
    return (there[Z] * parts[Y] + there[Y]) * parts[X] + there[X];
}

struct range split_levels(int levels, int threads, int stage) {
    if (threads == 1)
        return (struct range){1, levels + 1};
    int even = (levels + MEMORY_LEVELS + threads / 2) / threads - MEMORY_LEVELS, first = even > 1 ? even : 1;
    if (stage == 0)
        return (struct range){1, first + 1};
    struct range range = split_range(levels - first, threads - 1, stage - 1);
    return (struct range){range.begin + first + 1, range.end + first + 1};
}

long box_points(const struct box *box) {
    long points = 1;
    for (int d = 0; d < DIMENSIONS; d++)
        points *= box->range[d].end > box->range[d].begin ? box->range[d].end - box->range[d].begin : 0;
    return points;
}
