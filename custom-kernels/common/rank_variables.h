/* The variables by which launchers tell a process its rank: one table for plumb-bind, the witness and the
 * kernels.
 *
 * plumbline/mpi and plumbline/schedulers have the same rows; tests/unit/repository/test_rooms_mpi.py compares
 * them. */
#ifndef PLUMB_RANK_VARIABLES_H
#define PLUMB_RANK_VARIABLES_H

enum rank_column { RANK, LOCAL_RANK, LOCAL_SIZE, SIZE, RANK_COLUMNS };

/* One row for each set of variables, NULL where it lacks one; ended by a row without a rank. An MPI launcher
 * takes precedence over PMIx and over the scheduler that it runs in: mpirun inside a Slurm job leaves
 * SLURM_PROCID=0 in the environment of every rank. */
extern const char *const rank_variables[][RANK_COLUMNS];

/* The number in the first variable of `column` that holds one; -1 if none does. Calls neither malloc nor
 * stdio, and keeps errno. */
long told_by_launcher(enum rank_column column);

#endif
