/* Rows, hints and heat maps of a matrix of pairs. */
#include "fail_together.h"
#include "pairs.h"
#include "program.h"
#include "samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CELLS = 64, LEAST_IN_CLASS = 5, MOST_HINTS = 10 };

static const char *const classes[] = {"same-cpu",    "pair:smt",     "pair:l2",   "pair:l3", "pair:numa",
                                      "pair:socket", "pair:xsocket", "pair:node", "unbound"};
enum { CLASSES = sizeof classes / sizeof *classes };

/* One figure of a meeting. */
typedef double (*figure_of)(const struct meeting *meeting);

static double small_of(const struct meeting *meeting) {
    return meeting->small;
}

static double large_of(const struct meeting *meeting) {
    return meeting->large;
}

static const struct meeting *meeting_at(const struct matrix *matrix, int first, int second) {
    return &matrix->meetings[(size_t)first * (size_t)matrix->ranks + (size_t)second];
}

static const char *class_at(const struct matrix *matrix, int first, int second) {
    return class_of(&matrix->places[first], &matrix->places[second]);
}

static void add_pair_row(struct result *result, const struct matrix *matrix, const struct exchange *exchange,
                         int first, int second) {
    const struct meeting *meeting = meeting_at(matrix, first, second);
    const struct place *a = &matrix->places[first], *b = &matrix->places[second];
    struct row *row = result_row(result);
    row_text(row, "mode", matrix->mode);
    row_text(row, "class", class_of(a, b));
    row_text(row, "first_host", a->host);
    row_text(row, "second_host", b->host);
    row_integer(row, "first", first);
    row_integer(row, "second", second);
    if (a->bound && b->bound) {
        row_integer(row, "first_cpu", a->cpu.os);
        row_integer(row, "second_cpu", b->cpu.os);
    }
    row_figure(row, "latency", "us", LOWER_IS_BETTER, meeting->small, exchange->batches);
    row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, (double)exchange->bandwidth_bytes / meeting->large,
               exchange->batches);
}

/* The figures of all pairs of a class, one behind the other; returns how many. */
static size_t collect(const struct matrix *matrix, const char *class, figure_of figure, double *values) {
    size_t count = 0;
    for (int first = 0; first < matrix->ranks; first++)
        for (int second = first + 1; second < matrix->ranks; second++)
            if (!class || !strcmp(class_at(matrix, first, second), class))
                values[count++] = figure(meeting_at(matrix, first, second));
    return count;
}

/* The pairs of a class together; of all classes if `class` is NULL. */
static void add_class_row(struct result *result, const struct matrix *matrix, const char *class,
                          size_t large_bytes, double *values) {
    size_t count = collect(matrix, class, small_of, values);
    struct summary small = summarize(values, count);
    collect(matrix, class, large_of, values);
    struct summary large = summarize(values, count);
    struct row *row = result_row(result);
    row_text(row, "mode", matrix->mode);
    row_text(row, "class", class ? class : "all");
    row_integer(row, "pairs", (long long)count);
    row_figure(row, "class_latency", "us", LOWER_IS_BETTER, small.median, (long)count);
    row_figure(row, "worst_latency", "us", LOWER_IS_BETTER, small.most, (long)count);
    row_figure(row, "class_bandwidth", "MB/s", HIGHER_IS_BETTER, (double)large_bytes / large.median,
               (long)count);
    row_figure(row, "worst_bandwidth", "MB/s", HIGHER_IS_BETTER, (double)large_bytes / large.most,
               (long)count);
}

/* The time above which a pair of this class is called slow: the median plus five robust standard deviations
 * (1.4826 times the median absolute deviation), or plus a tenth of the median where that is more. */
static double slow_from(double *values, size_t count, double *median) {
    *median = summarize(values, count).median;
    for (size_t index = 0; index < count; index++)
        values[index] = fabs(values[index] - *median);
    return *median + fmax(5.0 * 1.4826 * summarize(values, count).median, 0.1 * *median);
}

static void add_hints(struct result *result, const struct matrix *matrix, const char *class, figure_of figure,
                      const char *what, double *values) {
    size_t count = collect(matrix, class, figure, values);
    double median, limit = slow_from(values, count, &median);
    int found = 0;
    for (int first = 0; first < matrix->ranks; first++)
        for (int second = first + 1; second < matrix->ranks; second++) {
            double value = figure(meeting_at(matrix, first, second));
            if (value <= limit || strcmp(class_at(matrix, first, second), class) != 0)
                continue;
            if (found++ < MOST_HINTS)
                result_note(result, "hint: %s of ranks %d (%s) and %d (%s): %.2f x the median of %s", what,
                            first, matrix->places[first].host, second, matrix->places[second].host,
                            value / median, class);
        }
    if (found > MOST_HINTS)
        result_note(result, "hint: %d pairs more of %s with a slow %s", found - MOST_HINTS, class, what);
}

/* The slowest meeting of ranks in block `row` with ranks in block `column`; 0: none. */
static double slowest(const struct matrix *matrix, figure_of figure, int block, int row, int column) {
    double most = 0.0;
    for (int a = row * block; a < (row + 1) * block && a < matrix->ranks; a++)
        for (int b = column * block; b < (column + 1) * block && b < matrix->ranks; b++)
            if (a != b)
                most = fmax(most, figure(meeting_at(matrix, a < b ? a : b, a < b ? b : a)));
    return most;
}

/* A character for each pair, or each block of pairs: the darker the slower. */
static void add_map(struct result *result, const struct matrix *matrix, figure_of figure, const char *what,
                    double *values) {
    static const char shades[] = " .:-=+*#%@";
    int block = (matrix->ranks + MOST_CELLS - 1) / MOST_CELLS, cells = (matrix->ranks + block - 1) / block;
    struct summary all = summarize(values, collect(matrix, NULL, figure, values));
    if (all.least <= 0.0) /* a pair is missing: the check says so */
        return;
    double span = log(fmax(all.most / all.least, 1.0 + 1e-9));
    result_note(result, "time of %s by pair, '%c' %.4g us to '%c' %.4g us%s:", what, shades[0], all.least,
                shades[sizeof shades - 2], all.most, block > 1 ? ", slowest of each block of ranks" : "");
    for (int row = 0; row < cells; row++) {
        char line[2 * MOST_CELLS + 1] = "";
        for (int column = 0; column < cells; column++) {
            double value = slowest(matrix, figure, block, row, column);
            int level = value > 0.0 ? (int)(9.999 * log(value / all.least) / span) : 0;
            line[2 * column] = ' ';
            line[2 * column + 1] = row == column && block == 1 ? '\\' : shades[level];
        }
        result_note(result, "%6d |%s |", row * block, line);
    }
}

/* How many pairs each class has. */
static void count_classes(const struct matrix *matrix, size_t counts[CLASSES]) {
    for (int first = 0; first < matrix->ranks; first++)
        for (int second = first + 1; second < matrix->ranks; second++) {
            int kind = 0;
            while (strcmp(classes[kind], class_at(matrix, first, second)) != 0)
                kind++;
            counts[kind]++;
        }
}

void show_pairs(struct result *result, const struct matrix *matrix, const struct exchange *exchange,
                long most_rows) {
    size_t pairs = (size_t)matrix->ranks * (size_t)(matrix->ranks - 1) / 2;
    double *values = allocate(pairs, sizeof *values);
    if (pairs <= (size_t)most_rows)
        for (int first = 0; first < matrix->ranks; first++)
            for (int second = first + 1; second < matrix->ranks; second++)
                add_pair_row(result, matrix, exchange, first, second);
    else
        result_note(result, "%zu pairs: no row for each, as --rows allows %ld", pairs, most_rows);
    size_t counts[CLASSES] = {0};
    count_classes(matrix, counts);
    for (int kind = 0; kind < CLASSES; kind++) {
        if (counts[kind] > 0)
            add_class_row(result, matrix, classes[kind], exchange->bandwidth_bytes, values);
        if (counts[kind] < LEAST_IN_CLASS)
            continue;
        add_hints(result, matrix, classes[kind], small_of, "latency", values);
        add_hints(result, matrix, classes[kind], large_of, "bandwidth", values);
    }
    add_class_row(result, matrix, NULL, exchange->bandwidth_bytes, values);
    if (!program_json() && matrix->ranks > 2) {
        add_map(result, matrix, small_of, "the small message", values);
        add_map(result, matrix, large_of, "the large message", values);
    }
    free(values);
}
