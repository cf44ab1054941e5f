#include "arguments.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool within(const struct argument *argument, double value) {
    return value >= argument->least && value <= argument->most;
}

static bool read_integer(const char *text, long *value) {
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *text != ' ' && *text != '+';
}

static bool read_real(const char *text, double *value) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && *text != ' ';
}

/* Digits and at most one of K, M, G, up to `end`; false also for what size_t cannot hold. */
static bool read_size(const char *text, const char *end, size_t *value) {
    size_t sum = 0;
    const char *at = text;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        size_t digit = (size_t)(*at - '0');
        if (sum > (SIZE_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    if (at == text)
        return false;
    if (at < end) {
        const char *unit = strchr("KMG", *at);
        if (!unit || at + 1 != end)
            return false;
        int bits = 10 * (int)(unit - "KMG" + 1);
        if (sum > SIZE_MAX >> bits)
            return false;
        sum <<= bits;
    }
    *value = sum;
    return true;
}

struct sizes sizes_up_to(size_t first, size_t most) {
    struct sizes sizes = {0};
    for (size_t value = first; value < most && sizes.count < MOST_SIZES - 1; value *= 2)
        sizes.values[sizes.count++] = value;
    sizes.values[sizes.count++] = most;
    return sizes;
}

size_t sizes_largest(const struct sizes *sizes) {
    size_t most = 0;
    for (int index = 0; index < sizes->count; index++)
        most = sizes->values[index] > most ? sizes->values[index] : most;
    return most;
}

static bool add_size(const struct argument *argument, struct sizes *sizes, size_t value) {
    if (sizes->count == MOST_SIZES || !within(argument, (double)value))
        return false;
    sizes->values[sizes->count++] = value;
    return true;
}

static bool read_sizes(const struct argument *argument, const char *text) {
    struct sizes *sizes = argument->value;
    sizes->count = 0;
    const char *dash = strchr(text, '-'), *end = text + strlen(text);
    size_t first, last;
    if (dash) {
        if (!read_size(text, dash, &first) || !read_size(dash + 1, end, &last) || first == 0 || first > last)
            return false;
        for (size_t value = first; value <= last; value *= 2)
            if (!add_size(argument, sizes, value))
                return false;
        return true;
    }
    for (const char *at = text;; at++) {
        const char *comma = strchr(at, ',');
        if (!read_size(at, comma ? comma : end, &first) || !add_size(argument, sizes, first))
            return false;
        if (!comma)
            return true;
        at = comma;
    }
}

static bool read_choice(const struct argument *argument, const char *text) {
    for (int index = 0; argument->choices[index]; index++)
        if (!strcmp(argument->choices[index], text)) {
            *(int *)argument->value = index;
            return true;
        }
    return false;
}

static bool read_value(const struct argument *argument, const char *text) {
    switch (argument->kind) {
    case ARGUMENT_INTEGER:
        return read_integer(text, argument->value) && within(argument, (double)*(long *)argument->value);
    case ARGUMENT_SIZE:
        return read_size(text, text + strlen(text), argument->value) &&
               within(argument, (double)*(size_t *)argument->value);
    case ARGUMENT_REAL:
        return read_real(text, argument->value) && within(argument, *(double *)argument->value);
    case ARGUMENT_CHOICE:
        return read_choice(argument, text);
    case ARGUMENT_SIZES:
        return read_sizes(argument, text);
    case ARGUMENT_TEXT:
        *(const char **)argument->value = text;
        return *text != '\0';
    case ARGUMENT_FLAG:
        break;
    }
    return false;
}

/* What a value must be, for messages and help. */
static void describe(const struct argument *argument, char *text, size_t room) {
    const char *what = argument->kind == ARGUMENT_REAL    ? "a number"
                       : argument->kind == ARGUMENT_SIZE  ? "a size such as 4096 or 64M,"
                       : argument->kind == ARGUMENT_SIZES ? "sizes such as 8,1K,4M or 8-4M, each"
                                                          : "a whole number";
    if (argument->kind == ARGUMENT_CHOICE) {
        int used = snprintf(text, room, "one of");
        for (int index = 0; argument->choices[index] && used < (int)room; index++)
            used += snprintf(text + used, room - (size_t)used, " %s", argument->choices[index]);
    } else if (argument->kind == ARGUMENT_TEXT)
        snprintf(text, room, "a text");
    else if (argument->most < 1e18)
        snprintf(text, room, "%s from %.12g to %.12g", what, argument->least, argument->most);
    else
        snprintf(text, room, "%s of at least %.12g", what, argument->least);
}

bool arguments_read(const struct argument *table, int argc, char **argv, char *why, size_t room) {
    for (int index = 1; index < argc; index++) {
        const struct argument *found = table;
        while (found->name && strcmp(found->name, argv[index]) != 0)
            found++;
        if (!found->name) {
            snprintf(why, room, "unknown option '%s': see --help", argv[index]);
            return false;
        }
        if (found->kind == ARGUMENT_FLAG) {
            *(bool *)found->value = true;
            continue;
        }
        const char *text = index + 1 < argc ? argv[++index] : "";
        if (!read_value(found, text)) {
            char wanted[400];
            describe(found, wanted, sizeof wanted);
            snprintf(why, room, "%s: '%s' is not %s", found->name, text, wanted);
            return false;
        }
    }
    return true;
}

static int size_text(size_t value, char *text, size_t room) {
    int unit = 0;
    while (unit < 3 && value && value % 1024 == 0) {
        value /= 1024;
        unit++;
    }
    return unit ? snprintf(text, room, "%zu%c", value, " KMG"[unit]) : snprintf(text, room, "%zu", value);
}

void argument_text(const struct argument *argument, char *text, size_t room) {
    const struct sizes *sizes = argument->value;
    size_t used = 0;
    text[0] = '\0';
    switch (argument->kind) {
    case ARGUMENT_FLAG:
        snprintf(text, room, "%s", *(bool *)argument->value ? "true" : "false");
        break;
    case ARGUMENT_INTEGER:
        snprintf(text, room, "%ld", *(long *)argument->value);
        break;
    case ARGUMENT_SIZE:
        size_text(*(size_t *)argument->value, text, room);
        break;
    case ARGUMENT_REAL:
        snprintf(text, room, "%.9g", *(double *)argument->value);
        break;
    case ARGUMENT_CHOICE:
        snprintf(text, room, "%s", argument->choices[*(int *)argument->value]);
        break;
    case ARGUMENT_TEXT:
        snprintf(text, room, "%s",
                 *(const char **)argument->value ? *(const char **)argument->value : "none");
        break;
    case ARGUMENT_SIZES:
        for (int index = 0; index < sizes->count && used + 24 < room; index++) {
            if (index)
                text[used++] = ',';
            used += (size_t)size_text(sizes->values[index], text + used, room - used);
        }
        break;
    }
}

void arguments_help(const struct argument *table, FILE *out) {
    for (const struct argument *argument = table; argument->name; argument++) {
        char value[512], wanted[400] = "";
        argument_text(argument, value, sizeof value);
        if (argument->kind == ARGUMENT_FLAG) {
            fprintf(out, "  %-18s %s\n", argument->name, argument->help);
            continue;
        }
        describe(argument, wanted, sizeof wanted);
        fprintf(out, "  %-18s %s\n  %-18s %s; default %s\n", argument->name, argument->help, "", wanted,
                value);
    }
}
