/* Which node each rank is on, as MPI finds it or as an option says. */
#ifndef PLUMB_RANK_NODES_H
#define PLUMB_RANK_NODES_H

struct nodes {
    int ranks, count;
    int *of;     /* node of each rank, numbered from 0 in the order of their first rank */
    int *sorted; /* ranks, those of node 0 first */
};

/* Collective. With `ranks_per_node` > 0 rank r counts as being on node r / ranks_per_node; with 0 the nodes
 * are those that MPI finds (ranks that can share memory). */
struct nodes nodes_find(int ranks, long ranks_per_node);
void nodes_free(struct nodes *nodes);

#endif
