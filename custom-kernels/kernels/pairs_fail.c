/* How the binder's code, which reads the machine, gives up inside an MPI program. */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void fail(const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fail_alone("%s", line);
}
