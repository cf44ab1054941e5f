#include "fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*before_exit)(int status);

void fail_calls(void (*end)(int status)) {
    before_exit = end;
}

void complain(const char *format, va_list arguments) {
    char line[2048];
    vsnprintf(line, sizeof line, format, arguments);
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '?';
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

static _Noreturn void give_up(int status, const char *format, va_list arguments) {
    complain(format, arguments);
    if (before_exit)
        before_exit(status);
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

void *allocate_apart(size_t count, size_t size) {
    void *memory = aligned_alloc(128, count * size);
    if (!memory)
        fail("out of memory");
    return memset(memory, 0, count * size);
}

void *grow(void *array, size_t count, size_t size) {
    if (count & (count - 1)) /* not a power of two: there is room */
        return array;
    void *larger = realloc(array, (count ? 2 * count : 1) * size);
    if (!larger)
        fail("out of memory");
    return larger;
}

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
