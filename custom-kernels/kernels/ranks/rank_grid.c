#include "rank_grid.h"

#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "timer.h"

#include <stdlib.h>
#include <string.h>

static int *inverse(const int *position_of, int count) {
    int *rank_at = allocate((size_t)count, sizeof *rank_at);
    for (int rank = 0; rank < count; rank++)
        rank_at[position_of[rank]] = rank;
    return rank_at;
}

struct traffic count_traffic(const struct grid *grid, const struct nodes *nodes, const int *position_of,
                             size_t face) {
    int *rank_at = inverse(position_of, grid->count);
    double *sent = allocate((size_t)nodes->count, sizeof *sent);
    struct traffic traffic = {0, 0};
    for (int rank = 0; rank < grid->count; rank++)
        for (int direction = 0; direction < 2 * grid->dimensions; direction++) {
            int other = grid_neighbour(grid, position_of[rank], direction);
            if (other >= 0 && nodes->of[rank_at[other]] != nodes->of[rank])
                sent[nodes->of[rank]] += (double)face;
        }
    for (int node = 0; node < nodes->count; node++) {
        traffic.total += sent[node];
        traffic.busiest_node = sent[node] > traffic.busiest_node ? sent[node] : traffic.busiest_node;
    }
    free(sent);
    free(rank_at);
    return traffic;
}

/* Ranks node by node take the positions of `order` in turn. */
static void deal(const struct nodes *nodes, const int *order, int *position_of) {
    for (int place = 0; place < nodes->ranks; place++)
        position_of[nodes->sorted[place]] = order[place];
}

const char *map_node_aware(const struct grid *grid, const struct nodes *nodes, size_t face,
                           int *position_of) {
    static const char *const names[] = {"nested blocks", "Hilbert curve", "row-major"};
    int *order = allocate((size_t)grid->count, sizeof *order),
        *map = allocate((size_t)grid->count, sizeof *map);
    const char *best = NULL;
    double least = 0.0;
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 0 && !order_blocks(grid, grid->count / nodes->count, order))
            continue;
        if (kind == 1)
            order_hilbert(grid, order);
        for (int place = 0; kind == 2 && place < grid->count; place++)
            order[place] = place;
        deal(nodes, order, map);
        double bytes = count_traffic(grid, nodes, map, face).total;
        if (!best || bytes < least) {
            best = names[kind];
            least = bytes;
            memcpy(position_of, map, (size_t)grid->count * sizeof *map);
        }
    }
    free(order);
    free(map);
    return best;
}

struct halo {
    int neighbours, directions[2 * MOST_DIMENSIONS], ranks[2 * MOST_DIMENSIONS],
        positions[2 * MOST_DIMENSIONS];
    char *out, *in; /* one face per neighbour */
    size_t face;
};

static struct halo halo_new(const struct grid *grid, const int *position_of, size_t face) {
    struct halo halo = {.face = face};
    int *rank_at = inverse(position_of, grid->count), own = position_of[program_rank()];
    for (int direction = 0; direction < 2 * grid->dimensions; direction++) {
        int position = grid_neighbour(grid, own, direction);
        if (position < 0)
            continue;
        halo.directions[halo.neighbours] = direction;
        halo.positions[halo.neighbours] = position;
        halo.ranks[halo.neighbours++] = rank_at[position];
    }
    free(rank_at);
    halo.out = memory_take(2 * MOST_DIMENSIONS * face);
    halo.in = memory_take(2 * MOST_DIMENSIONS * face);
    memset(halo.in, 0, 2 * MOST_DIMENSIONS * face);
    for (int index = 0; index < halo.neighbours; index++) {
        char *face_out = halo.out + (size_t)index * face;
        memset(face_out, halo.directions[index] + 1, face);
        memcpy(face_out, &own, sizeof own); /* a face is at least 8 bytes */
    }
    return halo;
}

static void exchange(struct halo *halo) {
    MPI_Request requests[4 * MOST_DIMENSIONS];
    int count = 0, face = (int)halo->face;
    for (int index = 0; index < halo->neighbours; index++)
        MPI_Irecv(halo->in + (size_t)index * halo->face, face, MPI_BYTE, halo->ranks[index],
                  halo->directions[index] ^ 1, MPI_COMM_WORLD, &requests[count++]);
    for (int index = 0; index < halo->neighbours; index++)
        MPI_Isend(halo->out + (size_t)index * halo->face, face, MPI_BYTE, halo->ranks[index],
                  halo->directions[index], MPI_COMM_WORLD, &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* Faces that do not carry their sender's position and the opposite direction. */
static long wrong_faces(const struct halo *halo) {
    long wrong = 0;
    for (int index = 0; index < halo->neighbours; index++) {
        const char *face = halo->in + (size_t)index * halo->face;
        int sender;
        memcpy(&sender, face, sizeof sender);
        wrong +=
            sender != halo->positions[index] || face[halo->face - 1] != (halo->directions[index] ^ 1) + 1;
    }
    return wrong;
}

long time_exchange(const struct grid *grid, const int *position_of, size_t face, long repetitions,
                   double *times, struct warm_ups *warm_ups) {
    struct halo halo = halo_new(grid, position_of, face);
    struct warm_up warm_up = warm_up_new(WARM_UP_S);
    while (warm_up_next(&warm_up, MPI_COMM_WORLD))
        for (long call = 0; call < warm_up.calls; call++)
            exchange(&halo);
    warm_ups_count(warm_ups, &warm_up);
    for (long repetition = 0; repetition < repetitions; repetition++) {
        MPI_Barrier(MPI_COMM_WORLD);
        uint64_t begin = ticks();
        exchange(&halo);
        times[repetition] = ticks_ns(ticks() - begin) * 1e-3;
    }
    MPI_Allreduce(MPI_IN_PLACE, times, (int)repetitions, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    long wrong = wrong_faces(&halo);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    memory_give_back(halo.out, 2 * MOST_DIMENSIONS * face);
    memory_give_back(halo.in, 2 * MOST_DIMENSIONS * face);
    return wrong;
}
