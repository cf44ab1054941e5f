/* The plan made true for this process. */
#ifndef PLUMB_APPLY_H
#define PLUMB_APPLY_H

#include "plan.h"

/* Bind this process to the rank's CPUs and read the binding back. Does nothing for the placement none. Fails
 * if the kernel gives anything but the plan. */
void apply_affinity(const struct plan *plan, unsigned rank, const struct machine *machine);

/* Set the memory policy, which the program inherits. Fails if the kernel refuses it, unless the machine has
 * one memory node only and the pages cannot go anywhere else. */
void apply_memory(const struct plan *plan, unsigned rank, const struct machine *machine);

/* Send standard output to HOST.PID.out in `folder`: launchers mix the lines of ranks. */
void redirect_output(const char *folder);

/* Become the program. Ends with status 127 if it is not found, 126 if it cannot be executed. */
_Noreturn void become(char **program);

#endif
