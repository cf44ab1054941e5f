/* The command line of a kernel: a table of options, read strictly, with --help made from the table. */
#ifndef PLUMB_KERNEL_ARGUMENTS_H
#define PLUMB_KERNEL_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum argument_kind {
    ARGUMENT_FLAG,    /* bool: no value */
    ARGUMENT_INTEGER, /* long: whole number */
    ARGUMENT_SIZE,    /* size_t: whole number, optionally with K, M or G (powers of 1024) */
    ARGUMENT_REAL,    /* double */
    ARGUMENT_CHOICE,  /* int: index of the word in `choices` */
    ARGUMENT_SIZES,   /* struct sizes: "8,1K,4M", or "8-4M" for every doubling */
    ARGUMENT_TEXT,    /* const char *: as it is given, not empty */
};

enum { MOST_SIZES = 64 };

struct sizes {
    int count;
    size_t values[MOST_SIZES];
};

/* `first`, its doublings below `most`, and `most`: threads or ranks of a sweep. */
struct sizes sizes_up_to(size_t first, size_t most);

size_t sizes_largest(const struct sizes *sizes);

/* One option. `value` holds the default and receives what is given; numbers lie in [least, most]. */
struct argument {
    const char *name; /* with the dashes; NULL ends a table */
    enum argument_kind kind;
    void *value;
    double least, most;
    const char *const *choices; /* ended by NULL */
    const char *help;
};

/* Read the options of `table` from the command line. Returns false with the reason in `why` (of `room`
 * bytes). */
bool arguments_read(const struct argument *table, int argc, char **argv, char *why, size_t room);

/* The table as help text, defaults shown. */
void arguments_help(const struct argument *table, FILE *out);

/* The value as text (what would be typed) into `text` of `room` bytes. */
void argument_text(const struct argument *argument, char *text, size_t room);

#endif
