#include "rank_nodes.h"

#include "fail_together.h"
#include "program.h"

#include <stdlib.h>

/* Names nodes by their first rank, then numbers them in that order. */
static void detect(struct nodes *nodes) {
    int first = program_rank();
    MPI_Bcast(&first, 1, MPI_INT, 0, program_node());
    MPI_Allgather(&first, 1, MPI_INT, nodes->of, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < nodes->ranks; rank++)
        nodes->of[rank] = nodes->of[rank] == rank ? nodes->count++ : nodes->of[nodes->of[rank]];
}

/* Counts the ranks of each node, then puts each rank at the next place of its node. */
static void sort(struct nodes *nodes) {
    int *place = allocate((size_t)nodes->count + 1, sizeof *place);
    for (int rank = 0; rank < nodes->ranks; rank++)
        place[nodes->of[rank] + 1]++;
    for (int node = 0; node < nodes->count; node++)
        place[node + 1] += place[node];
    for (int rank = 0; rank < nodes->ranks; rank++)
        nodes->sorted[place[nodes->of[rank]]++] = rank;
    free(place);
}

struct nodes nodes_find(int ranks, long ranks_per_node) {
    struct nodes nodes = {.ranks = ranks};
    nodes.of = allocate((size_t)ranks, sizeof *nodes.of);
    nodes.sorted = allocate((size_t)ranks, sizeof *nodes.sorted);
    if (ranks_per_node == 0)
        detect(&nodes);
    else
        for (int rank = 0; rank < ranks; rank++) {
            nodes.of[rank] = (int)(rank / ranks_per_node);
            nodes.count = nodes.of[rank] + 1;
        }
    sort(&nodes);
    return nodes;
}

void nodes_free(struct nodes *nodes) {
    free(nodes->of);
    free(nodes->sorted);
}
