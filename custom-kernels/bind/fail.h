/* The one way this program gives up: one line on stderr and an exit status. */
#ifndef PLUMB_FAIL_H
#define PLUMB_FAIL_H

#include <stddef.h>

enum { EXIT_BAD_INPUT = 2, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Print "plumb-bind: MESSAGE" as a single line (control characters become '?') and exit with status 2. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with another exit status. */
_Noreturn void fail_with(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Zeroed memory for `count` elements of `size` bytes; never NULL. The caller frees it. */
void *allocate(size_t count, size_t size);

/* A new string from a printf format. The caller frees it. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
