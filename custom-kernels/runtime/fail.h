/* How a kernel gives up: one line on stderr, and the same exit status on every rank. */
#ifndef PLUMB_KERNEL_FAIL_H
#define PLUMB_KERNEL_FAIL_H

#include <stdbool.h>
#include <stddef.h>

enum { EXIT_CHECK_FAILED = 1, EXIT_BAD_INPUT = 2 };

/* The name that begins every message: the kernel's. */
void fail_name(const char *name);

/* For a fault that every rank sees alike (arguments, number of ranks): rank 0 prints "NAME: MESSAGE", all
 * ranks finalize MPI and exit with status 2. Every rank must call it. */
_Noreturn void fail_together(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Collective: go on if `fine` on every rank; otherwise rank 0 prints the message of the lowest rank where it
 * is not, and all exit with status 2. */
void require(bool fine, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For a fault that only this rank sees and that others cannot be told of: print, then MPI_Abort with
 * status 2. */
_Noreturn void fail_alone(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed heap memory for bookkeeping, never NULL: `count` elements of `size` bytes. The caller frees it. */
void *allocate(size_t count, size_t size);

#endif
