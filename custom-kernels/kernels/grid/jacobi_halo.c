#include "jacobi_halo.h"

#include "fail_together.h"

#include <limits.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static struct range layers(const struct grid *grid, int d, enum side side, bool inside) {
    long depth = grid->plan.depth, size = grid->size[d];
    if (side == LOW)
        return inside ? (struct range){0, depth} : (struct range){-depth, 0};
    return inside ? (struct range){size - depth, size} : (struct range){size, size + depth};
}

static void make_face(struct halo *halo, int d, enum side side) {
    const struct grid *grid = halo->grid;
    struct face *face = &halo->faces[d][side];
    struct box inside = grid_inside(grid), outside = grid_outside(grid);
    face->neighbour = grid->wrap[d] ? -1 : grid->neighbour[d][side];
    for (int other = 0; other < DIMENSIONS; other++)
        face->send.range[other] = halo->ordered && other < d ? outside.range[other] : inside.range[other];
    face->receive = face->send;
    face->send.range[d] = layers(grid, d, side, true);
    face->receive.range[d] = layers(grid, d, side, false);
    long count = box_points(&face->send);
    require(count <= INT_MAX, "a halo of %ld values does not fit one message: use more ranks", count);
    face->count = (int)count;
    if (face->neighbour >= 0 && face->neighbour != halo->rank) {
        face->out = allocate((size_t)count, sizeof(double));
        face->in = allocate((size_t)count, sizeof(double));
    }
}

struct halo *halo_make(const struct grid *grid, bool corners, bool blocking) {
    struct halo *halo = allocate(1, sizeof *halo);
    *halo = (struct halo){.grid = grid, .ordered = corners, .blocking = blocking};
    MPI_Comm_rank(MPI_COMM_WORLD, &halo->rank);
    for (int d = 0; d < DIMENSIONS; d++)
        for (int side = LOW; side < SIDES; side++)
            make_face(halo, d, (enum side)side);
    return halo;
}

void halo_free(struct halo *halo) {
    for (int d = 0; d < DIMENSIONS; d++)
        for (int side = LOW; side < SIDES; side++) {
            free(halo->faces[d][side].out);
            free(halo->faces[d][side].in);
        }
    free(halo);
}

size_t halo_bytes(const struct halo *halo) {
    size_t bytes = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        for (int side = LOW; side < SIDES; side++)
            if (halo->faces[d][side].out)
                bytes += (size_t)halo->faces[d][side].count * sizeof(double);
    return bytes;
}

/* Copy the rows of `box` to a packed buffer, or from it. */
static void copy_box(const struct grid *grid, double *values, const struct box *box, double *buffer,
                     bool packing) {
    const struct range x = box->range[X], y = box->range[Y], z = box->range[Z];
    long length = x.end - x.begin, rows = y.end - y.begin;
#pragma omp parallel for schedule(static) if (!omp_in_parallel())
    for (long k = z.begin; k < z.end; k++)
        for (long j = y.begin; j < y.end; j++) {
            double *row = grid_row(grid, values, j, k) + x.begin;
            double *packed = buffer + ((k - z.begin) * rows + (j - y.begin)) * length;
            memcpy(packing ? packed : row, packing ? row : packed, (size_t)length * sizeof(double));
        }
}

/* A periodic dimension in one part: this rank is its own neighbour. */
static void copy_across(const struct grid *grid, double *values, const struct box *from,
                        const struct box *to) {
    const struct range x = from->range[X], y = from->range[Y], z = from->range[Z];
#pragma omp parallel for schedule(static) if (!omp_in_parallel())
    for (long k = z.begin; k < z.end; k++)
        for (long j = y.begin; j < y.end; j++)
            memcpy(
                grid_row(grid, values, to->range[Y].begin + j - y.begin, to->range[Z].begin + k - z.begin) +
                    to->range[X].begin,
                grid_row(grid, values, j, k) + x.begin, (size_t)(x.end - x.begin) * sizeof(double));
}

/* A message is tagged with the dimension and the side it leaves through. */
static int tag(int d, int side) {
    return 2 * d + side;
}

static void send_receive(struct halo *halo, int d) {
    for (int side = LOW; side < SIDES; side++) {
        struct face *there = &halo->faces[d][side], *back = &halo->faces[d][1 - side];
        MPI_Sendrecv(there->out, there->out ? there->count : 0, MPI_DOUBLE,
                     there->out ? there->neighbour : MPI_PROC_NULL, tag(d, side), back->in,
                     back->in ? back->count : 0, MPI_DOUBLE, back->in ? back->neighbour : MPI_PROC_NULL,
                     tag(d, side), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void start_and_wait(struct halo *halo, int first, int last) {
    MPI_Request requests[2 * DIMENSIONS * SIDES];
    int count = 0;
    for (int d = first; d < last; d++)
        for (int side = LOW; side < SIDES; side++) {
            struct face *face = &halo->faces[d][side];
            if (face->in)
                MPI_Irecv(face->in, face->count, MPI_DOUBLE, face->neighbour, tag(d, 1 - side),
                          MPI_COMM_WORLD, &requests[count++]);
        }
    for (int d = first; d < last; d++)
        for (int side = LOW; side < SIDES; side++) {
            struct face *face = &halo->faces[d][side];
            if (face->out)
                MPI_Isend(face->out, face->count, MPI_DOUBLE, face->neighbour, tag(d, side), MPI_COMM_WORLD,
                          &requests[count++]);
        }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* The dimensions from `first` to before `last`, none of which needs another's halo. */
static void exchange(struct halo *halo, double *values, int first, int last) {
    for (int d = first; d < last; d++)
        for (int side = LOW; side < SIDES; side++) {
            struct face *face = &halo->faces[d][side];
            if (face->out)
                copy_box(halo->grid, values, &face->send, face->out, true);
            else if (face->neighbour == halo->rank)
                copy_across(halo->grid, values, &halo->faces[d][1 - side].send, &face->receive);
        }
    if (halo->blocking)
        for (int d = first; d < last; d++)
            send_receive(halo, d);
    else
        start_and_wait(halo, first, last);
    for (int d = first; d < last; d++)
        for (int side = LOW; side < SIDES; side++)
            if (halo->faces[d][side].in)
                copy_box(halo->grid, values, &halo->faces[d][side].receive, halo->faces[d][side].in, false);
}

void halo_exchange(struct halo *halo, int which) {
    double *values = halo->grid->values[which];
    if (!halo->ordered) {
        exchange(halo, values, 0, DIMENSIONS);
        return;
    }
    for (int d = 0; d < DIMENSIONS; d++)
        exchange(halo, values, d, d + 1);
}
