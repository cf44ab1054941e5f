#include "program.h"
#include "result_data.h"
#include "timer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELL = 64, MOST_COLUMNS = MOST_PARAMETERS + 2 * MOST_FIGURES };

typedef char cell[CELL];

/* How much of its limit a figure reaches: value / limit, the other way round where lower is better. */
static double figure_percent(const struct figure *figure) {
    return 100.0 * (figure->better == HIGHER_IS_BETTER ? figure->value / figure->limit
                                                       : figure->limit / figure->value);
}

/* Four significant digits, no exponent in the range that people read; bytes are whole. */
static void number(const struct figure *figure, cell text) {
    double value = figure->value, size = fabs(value);
    int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
    if (!isfinite(value))
        snprintf(text, CELL, "not finite");
    else if (!strcmp(figure->unit, "bytes"))
        snprintf(text, CELL, "%.0f", value);
    else if (size != 0.0 && (size >= 1e7 || size < 1e-3))
        snprintf(text, CELL, "%.4g", value);
    else
        snprintf(text, CELL, "%.*f", decimals, value);
}

/* The cells of a row, or of its header; returns how many. Percentages of the model follow their figure. */
static int cells(const struct row *row, bool header, cell *out) {
    int count = 0;
    for (int index = 0; index < row->parameter_count; index++, count++) {
        const struct parameter *parameter = &row->parameters[index];
        if (header)
            snprintf(out[count], CELL, "%s", parameter->name);
        else if (parameter->text)
            snprintf(out[count], CELL, "%s", parameter->text);
        else
            snprintf(out[count], CELL, "%lld", parameter->integer);
    }
    for (int index = 0; index < row->figure_count; index++) {
        const struct figure *figure = &row->figures[index];
        bool plain = !strcmp(figure->unit, "1");
        if (header)
            snprintf(out[count], CELL, plain ? "%s" : "%s %s", figure->name, figure->unit);
        else
            number(figure, out[count]);
        count++;
        if (isnan(figure->limit))
            continue;
        if (header)
            snprintf(out[count], CELL, "%% of model");
        else
            snprintf(out[count], CELL, "%.1f", figure_percent(figure));
        count++;
    }
    return count;
}

static bool same_header(const struct row *left, const struct row *right) {
    cell a[MOST_COLUMNS], b[MOST_COLUMNS];
    int count = cells(left, true, a);
    if (cells(right, true, b) != count)
        return false;
    for (int column = 0; column < count; column++)
        if (strcmp(a[column], b[column]) != 0)
            return false;
    return true;
}

static void print_cells(cell *row, int count, const int *widths, int texts) {
    for (int column = 0; column < count; column++)
        printf(column < texts ? "%s%-*s" : "%s%*s", column ? "  " : "", widths[column], row[column]);
    printf("\n");
}

/* Rows [first, last), which have the same columns; text stands left, numbers right. */
static void print_rows(const struct result *result, int first, int last) {
    int widths[MOST_COLUMNS] = {0}, texts = 0;
    cell row[MOST_COLUMNS];
    for (int index = first - 1; index < last; index++) {
        int count = cells(result->rows[index < first ? first : index], index < first, row);
        for (int column = 0; column < count; column++)
            if ((int)strlen(row[column]) > widths[column])
                widths[column] = (int)strlen(row[column]);
    }
    const struct row *pattern = result->rows[first];
    while (texts < pattern->parameter_count && pattern->parameters[texts].text)
        texts++;
    for (int index = first - 1; index < last; index++) {
        int count = cells(result->rows[index < first ? first : index], index < first, row);
        print_cells(row, count, widths, texts);
    }
}

static void print_head(const struct binding *bindings) {
    const struct timer *timer = timer_facts();
    int hosts = 1;
    for (int rank = 1; rank < program_ranks(); rank++)
        hosts += strcmp(bindings[rank].host, bindings[rank - 1].host) != 0;
    printf("%s: %s\n", program_facts()->name, program_facts()->summary);
    printf("%d rank%s x %d thread%s on %s%s; timer %s, resolution %.1f ns\n", program_ranks(),
           program_ranks() == 1 ? "" : "s", bindings[0].threads, bindings[0].threads == 1 ? "" : "s",
           bindings[0].host, hosts > 1 ? " and others" : "", timer->source, timer->resolution_ns);
    enum { SHOWN = 8 };
    for (int rank = 0; rank < program_ranks() && rank < SHOWN; rank++)
        printf("rank %d may run on CPUs %s\n", rank, bindings[rank].cpus);
    if (program_ranks() > SHOWN)
        printf("... %d ranks more (--json has them all)\n", program_ranks() - SHOWN);
}

bool result_print_table(const struct result *result, const struct binding *bindings) {
    print_head(bindings);
    for (int first = 0, last; first < result->row_count; first = last) {
        last = first + 1;
        while (last < result->row_count && same_header(result->rows[first], result->rows[last]))
            last++;
        printf("\n");
        print_rows(result, first, last);
    }
    printf("\n");
    if (result->model)
        printf("model: %s\n", result->model);
    for (int index = 0; index < result->note_count; index++)
        printf("%s\n", result->notes[index].text);
    for (int index = 0; index < result->check_count; index++)
        printf(result->checks[index].condition ? "condition: %s: %s (%.3g, at most %.3g)\n"
                                               : "check: %s: %s (error %.3g, tolerance %.3g)\n",
               result->checks[index].what, result->checks[index].passed ? "right" : "WRONG",
               result->checks[index].error, result->checks[index].tolerance);
    return fflush(stdout) == 0 && !ferror(stdout);
}
