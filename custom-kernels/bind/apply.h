/* Applies the plan to this process: CPU affinity, memory policy, standard output and input and, at
 * last, the program. */
#ifndef PLUMB_APPLY_H
#define PLUMB_APPLY_H

#include "plan.h"

/* Bind this process to the CPUs that --allowed left, whatever the placement. */
void apply_allowed(const struct machine *machine);

/* Bind this process to the rank's CPUs and read the binding back. Does nothing for the placement none. Fails
 * if the kernel refuses, or if the binding differs from the plan. */
void apply_affinity(const struct plan *plan, unsigned rank, const struct machine *machine);

/* Set the memory policy, which the program inherits. Fails if the kernel refuses it. A container that forbids
 * the call (EPERM, ENOSYS) is accepted where nothing can be chosen: no policy is wanted, or the machine has
 * only one NUMA node. */
void apply_memory(const struct plan *plan, unsigned rank, const struct machine *machine);

/* Send standard output to HOST.PID.out in `folder`, because launchers mix the lines of ranks. Fails if the
 * file cannot be opened. */
void redirect_output(const char *folder);

/* Take standard input from the file `path` in the first rank, as launchers do; NULL, and in all others:
 * nothing is there. Fails if the file cannot be opened. */
void redirect_input(const char *path);

/* Execute the program in place of this process. Exits with status 127 if it is not found, 126 if it cannot be
 * executed. */
_Noreturn void become(char **program);

#endif
