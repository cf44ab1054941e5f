/* Decomposition of a 3D grid among ranks, and of sweeps among threads: arithmetic only. */
#ifndef PLUMB_JACOBI_SPLIT_H
#define PLUMB_JACOBI_SPLIT_H

#include <stdbool.h>

enum { X, Y, Z, DIMENSIONS };
enum side { LOW, HIGH, SIDES };

/* Points [begin, end) of a dimension, and of all three. */
struct range {
    long begin, end;
};
struct box {
    struct range range[DIMENSIONS];
};

/* Points of part `part` of `parts`: the sizes differ by at most one. */
struct range split_range(long points, int parts, int part);

/* Points that the largest part sends in one exchange of halos that are one layer thick. A dimension in one
 * part sends nothing. */
long split_surface(const long points[DIMENSIONS], const int parts[DIMENSIONS]);

/* Choose the parts of each dimension, their product being `ranks`, such that every part has at least `least`
 * points in each dimension that is split and the surface is smallest; among equals the one that splits z,
 * then y, most. Returns false if there is none. */
bool split_ranks(const long points[DIMENSIONS], int ranks, long least, int parts[DIMENSIONS]);

/* The place of a rank among the parts, x running fastest. */
void split_place(const int parts[DIMENSIONS], int rank, int place[DIMENSIONS]);

/* The rank beside `place`; -1 beyond the end of a dimension that is not periodic. */
int split_neighbour(const int parts[DIMENSIONS], const int place[DIMENSIONS], int dimension, enum side side,
                    bool periodic);

/* The levels [begin, end) of one stage of a pipeline, counted from 1. The first stage gets fewer: it waits
 * for memory. */
struct range split_levels(int levels, int threads, int stage);

long box_points(const struct box *box);

#endif
