#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

char *text(const char *format, ...) {
    char *result = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&result, format, arguments);
    va_end(arguments);
    if (length < 0)
        fail("out of memory");
    return result;
}
