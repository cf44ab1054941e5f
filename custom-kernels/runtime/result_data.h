/* The inside of a result, for its two printers. */
#ifndef PLUMB_KERNEL_RESULT_DATA_H
#define PLUMB_KERNEL_RESULT_DATA_H

#include "binding.h"
#include "result.h"
#include "work.h"

enum { MOST_PARAMETERS = 12, MOST_FIGURES = 12 };

struct parameter {
    char *name, *text; /* text NULL: an integer */
    long long integer;
};

struct figure {
    char *name, *unit;
    enum better better;
    double value, limit; /* limit NAN: none */
    long samples;
};

struct row {
    struct parameter parameters[MOST_PARAMETERS];
    struct figure figures[MOST_FIGURES];
    int parameter_count, figure_count;
};

struct check {
    char *what;
    bool passed, condition;
    double error, tolerance;
};

struct note {
    char *text;
    bool remark; /* records keep it */
};

struct result {
    struct row **rows;
    struct check *checks;
    struct note *notes;
    char *model;
    struct work work; /* where the program counts it */
    int row_count, check_count, note_count;
};

/* To standard output, as one JSON document or as a table; false if that cannot be written. */
bool result_write_json(const struct result *result, const struct binding *bindings, bool passed);
bool result_print_table(const struct result *result, const struct binding *bindings);

#endif
