/* Which rank of this node am I? The launcher's environment tells. */
#ifndef PLUMB_LOCAL_RANK_H
#define PLUMB_LOCAL_RANK_H

#include <stdbool.h>

struct local_rank {
    unsigned rank;   /* local rank, from 0 */
    unsigned size;   /* ranks on this node; without size_known no more than rank + 1 is sure */
    bool size_known; /* false: the launcher tells the local rank only */
};

/* Read the variables of common/rank_variables.c. Without any of them, and for the script of a batch job, it
 * is rank 0 of 1. Fails if a variable cannot be read, or if a launcher started this process without telling
 * its local rank. */
struct local_rank find_local_rank(void);

#endif
