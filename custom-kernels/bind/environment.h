/* The environment that the program gets. */
#ifndef PLUMB_ENVIRONMENT_H
#define PLUMB_ENVIRONMENT_H

#include "plan.h"

/* Export OMP_NUM_THREADS and PLUMB_PLAN, unless the placement is none OMP_PLACES and OMP_PROC_BIND, and what
 * chooses the rank's GPU if it has one; remove the variables that would bind threads otherwise. Fails if the
 * job was given only some of the GPUs. */
void export_plan(const struct plan *plan, unsigned rank);

/* Export PLUMB_WITNESS_DIR and PLUMB_WITNESS_PID and preload the witness library. Fails if the folder or the
 * library is not there. */
void export_witness(const char *folder);

/* Export PLUMB_PROFILE_DIR and preload the library of profiles; before the witness, which then stands in
 * front. Fails as that does. */
void export_profile(const char *folder);

/* Export PLUMB_BINDER_CPU_US, the CPU time of this process until now: the witness takes it off. */
void export_own_time(void);

#endif
