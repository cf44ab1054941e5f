/* The rank of this process on its node, from the environment that the launcher sets. */
#ifndef PLUMB_LOCAL_RANK_H
#define PLUMB_LOCAL_RANK_H

#include <stdbool.h>

struct local_rank {
    unsigned rank;   /* local rank, from 0 */
    unsigned size;   /* ranks on this node; without size_known a lower bound, rank + 1 */
    bool size_known; /* false: the launcher reports the local rank only */
};

/* Read the variables of common/rank_variables.c. Without any of them, and in the script of a batch job, the
 * result is rank 0 of 1. Fails if a variable is not a number, or if a launcher started this process but does
 * not report its local rank. */
struct local_rank find_local_rank(void);

#endif
