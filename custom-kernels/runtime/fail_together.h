/* How the ranks of a kernel give up: one line on stderr, and the same exit status on every rank.
 *
 * fail() of fail.h is for a fault that only this rank sees and cannot tell the others: it aborts them. */
#ifndef PLUMB_KERNEL_FAIL_TOGETHER_H
#define PLUMB_KERNEL_FAIL_TOGETHER_H

#include "fail.h"

#include <stdbool.h>

enum { EXIT_CHECK_FAILED = 1 };

/* From now on fail() ends the other ranks too. */
void fail_aborts_all_ranks(void);

/* For a fault that every rank sees alike (arguments, number of ranks): rank 0 prints "NAME: MESSAGE", all
 * ranks finalize MPI and exit with status 2. Every rank must call it. */
_Noreturn void fail_together(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Collective: continue if `fine` on every rank; otherwise rank 0 prints the message of the lowest rank where
 * it is not, and all exit with status 2. */
void require(bool fine, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
