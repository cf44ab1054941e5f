/* The CPU time that the control groups of this process leave it. */
#ifndef PLUMB_CHECK_QUOTA_H
#define PLUMB_CHECK_QUOTA_H

/* CPUs that may be used on average, by version 1 and 2, of the group and all above it; INFINITY without a
 * quota. */
double quota_cpus(void);

#endif
