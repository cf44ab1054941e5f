#include "rank_variables.h"

#include <errno.h>
#include <stdlib.h>

const char *const rank_variables[][RANK_COLUMNS] = {
    /* Open MPI */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_SIZE"},
    /* MVAPICH */
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"},
    /* Hydra of MPICH, MVAPICH and Intel MPI, and with -pmi-port */
    {"PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_SIZE"},
    {"PMI_ID", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
    /* Cray MPICH: Cray PMI, PALS */
    {"PMI_RANK", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "PMI_SIZE"},
    {"PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_SIZE"},
    {"PALS_RANKID", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE", "PALS_SIZE"},
    /* PMIx */
    {"PMIX_RANK", NULL, NULL, NULL},
    /* Flux and Slurm, as launchers themselves */
    {"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", NULL, "FLUX_JOB_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", NULL, "SLURM_STEP_NUM_TASKS"},
    {"SLURM_PROCID", "SLURM_LOCALID", NULL, "SLURM_NTASKS"},
    {NULL, NULL, NULL, NULL},
};

static long number_in(const char *name) {
    const char *value = name ? getenv(name) : NULL;
    if (!value)
        return -1;
    char *end;
    long number = strtol(value, &end, 10);
    return end != value && *end == '\0' && number >= 0 ? number : -1;
}

long told_by_launcher(enum rank_column column) {
    int saved = errno;
    long number = -1;
    for (int row = 0; rank_variables[row][RANK] && number < 0; row++)
        number = number_in(rank_variables[row][column]);
    errno = saved;
    return number;
}
