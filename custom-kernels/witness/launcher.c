/* Which rank of how many is this? Every launcher says it in variables of its own. */
#include <errno.h>
#include <stdlib.h>

#include "witness.h"

/* Schedulers last: mpirun inside a Slurm job leaves SLURM_PROCID=0 in the environment of every rank. */
static const char *const rank_names[] = {
    "OMPI_COMM_WORLD_RANK", "PMI_RANK",       "MV2_COMM_WORLD_RANK", "PMIX_RANK",
    "PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID",        NULL};
static const char *const local_rank_names[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
                                               "MPI_LOCALRANKID",
                                               "MV2_COMM_WORLD_LOCAL_RANK",
                                               "PMI_LOCAL_RANK",
                                               "PALS_LOCAL_RANKID",
                                               "FLUX_TASK_LOCAL_ID",
                                               "SLURM_LOCALID",
                                               NULL};
static const char *const size_names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                         "MV2_COMM_WORLD_SIZE",  "PALS_SIZE",
                                         "FLUX_JOB_SIZE",        "SLURM_STEP_NUM_TASKS",
                                         "SLURM_NTASKS",         NULL};

static long rank = -1;
static long local_rank = -1;
static long size = -1;

static long first_of(const char *const *names) {
    for (; *names != NULL; names++) {
        const char *value = getenv(*names);
        char *end = NULL;
        long number = value != NULL ? strtol(value, &end, 10) : -1;
        if (value != NULL && end != value && *end == '\0' && number >= 0) {
            return number;
        }
    }
    return -1;
}

/* Read at the start: MPI libraries and programs may clear the environment. */
void launcher_start(void) {
    int saved = errno;
    rank = first_of(rank_names);
    local_rank = first_of(local_rank_names);
    size = first_of(size_names);
    errno = saved;
}

long launcher_rank(void) {
    return rank;
}

void launcher_write(struct json *out) {
    json_int(out, "rank", rank);
    json_int(out, "local_rank", local_rank);
    json_int(out, "size", size);
}
