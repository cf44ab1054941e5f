/* The one way a program gives up: one line on stderr and an exit status. */
#ifndef PLUMB_FAIL_H
#define PLUMB_FAIL_H

#include <stdarg.h>
#include <stddef.h>

enum { EXIT_BAD_INPUT = 2, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Print "PROGRAM: MESSAGE" as a single line (control characters become '?') and exit with status 2. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like fail, with another exit status. */
_Noreturn void fail_with(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print the line "PROGRAM: MESSAGE" to stderr, as fail does, and return. */
void complain(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Call `end` with the status between the line and the exit: an MPI program aborts its other ranks there. */
void fail_calls(void (*end)(int status));

/* Zeroed memory for `count` elements of `size` bytes; never NULL. The caller frees it. */
void *allocate(size_t count, size_t size);

/* Like allocate, but aligned to 128 bytes, which is two cache lines: prefetchers load lines in pairs. */
void *allocate_apart(size_t count, size_t size);

/* Room for one more element of `size` bytes behind the `count` of an array that grows by doubling. */
void *grow(void *array, size_t count, size_t size);

/* A new string from a printf format. The caller frees it. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
