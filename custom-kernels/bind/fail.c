#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void give_up(int status, const char *format, va_list arguments) {
    char line[2048];
    vsnprintf(line, sizeof line, format, arguments);
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '?';
    fprintf(stderr, "plumb-bind: %s\n", line);
    exit(status);
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    give_up(EXIT_BAD_INPUT, format, arguments);
}

void fail_with(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    give_up(status, format, arguments);
}

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        fail("out of memory");
    return memory;
}
