/* The rank of this process and the number of ranks, as the launcher reports them. */
#include "rank_variables.h"
#include "witness.h"

static long rank, local_rank, size;

/* Read at the start: MPI libraries and programs may clear the environment. */
void rank_start(void) {
    rank = told_by_launcher(RANK);
    local_rank = told_by_launcher(LOCAL_RANK);
    size = told_by_launcher(SIZE);
}

bool rank_is_first_of_host(void) {
    return local_rank <= 0;
}

long rank_number(void) {
    return rank;
}

void rank_write(struct json *out) {
    json_int(out, "rank", rank);
    json_int(out, "local_rank", local_rank);
    json_int(out, "size", size);
}
