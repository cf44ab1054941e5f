/* The environment that the program gets. */
#ifndef PLUMB_ENVIRONMENT_H
#define PLUMB_ENVIRONMENT_H

#include "plan.h"

/* Export OMP_NUM_THREADS and PLUMB_PLAN, and the variables that choose the rank's GPU if it has one. Unless
 * the placement is none, also export OMP_PLACES and OMP_PROC_BIND, and remove the variables that would bind
 * threads in another way. Fails if the rank has a GPU and the job was given only some of the host's GPUs. */
void export_plan(const struct plan *plan, unsigned rank);

/* Export PLUMB_WITNESS_DIR and PLUMB_WITNESS_PID and preload the witness library. Fails if the folder or the
 * library is not there. */
void export_witness(const char *folder);

/* Export PLUMB_PROFILE_DIR and preload the profile library. Call it before export_witness, whose library must
 * come first in LD_PRELOAD. Fails if the folder or the library is not there. */
void export_profile(const char *folder);

/* Export PLUMB_BINDER_CPU_US, the CPU time of this process until now in microseconds: the witness subtracts
 * it. */
void export_own_time(void);

#endif
