/* Exchange of halos with the six neighbours. */
#ifndef PLUMB_JACOBI_HALO_H
#define PLUMB_JACOBI_HALO_H

#include "jacobi_grid.h"

#include <mpi.h>

/* One side of one dimension: what is sent to the neighbour there, and where its values are written. */
struct face {
    int neighbour; /* -1: nothing to exchange */
    struct box send, receive;
    int count; /* doubles */
    double *out, *in;
};

struct halo {
    const struct grid *grid;
    struct face faces[DIMENSIONS][SIDES];
    bool ordered, blocking;
    int rank;
};

/* With `corners`, x is exchanged first, then y with the halo in x, then z with both: values from diagonal
 * neighbours arrive in two or three steps without their own messages (Ding and He, SC 2001). Without,
 * the six faces are exchanged at once and corners are not filled. `blocking`: MPI_Sendrecv side by side. */
struct halo *halo_make(const struct grid *grid, bool corners, bool blocking);
void halo_free(struct halo *halo);

/* Fill the halo of array `which`. One thread calls it; outside of parallel regions several copy. */
void halo_exchange(struct halo *halo, int which);

/* Bytes that this rank sends to other ranks in one exchange. */
size_t halo_bytes(const struct halo *halo);

#endif
