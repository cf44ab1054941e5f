#include "result.h"

#include "binding.h"
#include "fail_together.h"
#include "program.h"
#include "result_data.h"
#include "timer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *formatted(const char *format, va_list arguments) {
    char line[1024];
    vsnprintf(line, sizeof line, format, arguments);
    return text("%s", line);
}

struct result *result_new(void) {
    return allocate(1, sizeof(struct result));
}

void result_model(struct result *result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    free(result->model);
    result->model = formatted(format, arguments);
    va_end(arguments);
}

static void new_note(struct result *result, char *text, bool remark) {
    result->notes = grow(result->notes, (size_t)result->note_count, sizeof *result->notes);
    result->notes[result->note_count++] = (struct note){text, remark};
}

void result_note(struct result *result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    new_note(result, formatted(format, arguments), false);
    va_end(arguments);
}

void result_remark(struct result *result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    new_note(result, formatted(format, arguments), true);
    va_end(arguments);
}

struct row *result_row(struct result *result) {
    result->rows = grow(result->rows, (size_t)result->row_count, sizeof *result->rows);
    struct row *row = allocate(1, sizeof *row);
    result->rows[result->row_count++] = row;
    return row;
}

static struct parameter *new_parameter(struct row *row, const char *name) {
    if (row->parameter_count == MOST_PARAMETERS)
        fail("a row with more than %d parameters", MOST_PARAMETERS);
    struct parameter *parameter = &row->parameters[row->parameter_count++];
    parameter->name = text("%s", name);
    return parameter;
}

void row_integer(struct row *row, const char *name, long long value) {
    new_parameter(row, name)->integer = value;
}

void row_text(struct row *row, const char *name, const char *value) {
    new_parameter(row, name)->text = text("%s", value);
}

void row_figure(struct row *row, const char *name, const char *unit, enum better better, double value,
                long samples) {
    if (row->figure_count == MOST_FIGURES)
        fail("a row with more than %d figures", MOST_FIGURES);
    row->figures[row->figure_count++] =
        (struct figure){text("%s", name), text("%s", unit), better, value, NAN, samples};
}

void row_limit(struct row *row, double limit) {
    row->figures[row->figure_count - 1].limit = limit;
}

void result_check(struct result *result, bool passed, const char *what, double error, double tolerance) {
    result->checks = grow(result->checks, (size_t)result->check_count, sizeof *result->checks);
    result->checks[result->check_count++] =
        (struct check){text("%s", what), passed && !isnan(error), false, error, tolerance};
}

void result_condition(struct result *result, bool passed, const char *what, double value, double most) {
    result_check(result, passed, what, value, most);
    result->checks[result->check_count - 1].condition = true;
}

static bool finite_figures(const struct result *result) {
    for (int index = 0; index < result->row_count; index++)
        for (int number = 0; number < result->rows[index]->figure_count; number++)
            if (!isfinite(result->rows[index]->figures[number].value))
                return false;
    return true;
}

static bool has_passed(const struct result *result) {
    bool passed = result->check_count > 0 && result->row_count > 0 && finite_figures(result);
    for (int index = 0; index < result->check_count; index++)
        passed = passed && result->checks[index].passed;
    return passed;
}

static void free_row(struct row *row) {
    for (int index = 0; index < row->parameter_count; index++) {
        free(row->parameters[index].name);
        free(row->parameters[index].text);
    }
    for (int index = 0; index < row->figure_count; index++) {
        free(row->figures[index].name);
        free(row->figures[index].unit);
    }
    free(row);
}

static void free_result(struct result *result) {
    for (int index = 0; index < result->row_count; index++)
        free_row(result->rows[index]);
    for (int index = 0; index < result->note_count; index++)
        free(result->notes[index].text);
    for (int index = 0; index < result->check_count; index++)
        free(result->checks[index].what);
    free(result->rows);
    free(result->notes);
    free(result->checks);
    free(result->model);
    free(result);
}

static void collect_work(struct result *result) {
    result->work = work_collect();
    const struct work *work = &result->work;
    if (work->flop > 0.0)
        result_note(result, "work by the model, in everything timed: %.4g GFlop", work->flop * 1e-9);
    if (work->bytes > 0.0)
        result_note(result, "work by the model, in everything timed: %.4g GB", work->bytes * 1e-9);
    if (work->missing[0])
        result_note(result, "not counted: %s", work->missing);
    else
        result_note(result,
                    "counted by the processor meanwhile: %.4g instructions, %.3g a cycle; %.4g misses of %s",
                    work->counted[INSTRUCTIONS], work->counted[INSTRUCTIONS] / work->counted[CYCLES],
                    work->counted[CACHE_MISSES], work->line_bytes ? "the last cache" : "a cache");
}

int result_finish(struct result *result) {
    if (program_facts()->work)
        collect_work(result);
    struct binding *bindings = binding_collect();
    int passed = has_passed(result);
    if (program_rank() == 0) {
        bool written = program_json() ? result_write_json(result, bindings, passed)
                                      : result_print_table(result, bindings);
        passed = passed && written;
        for (int index = 0; index < result->check_count; index++)
            if (!result->checks[index].passed)
                fprintf(stderr,
                        result->checks[index].condition
                            ? "%s: the launch was disturbed: %s: %.3g, at most %.3g is valid\n"
                            : "%s: the answer is wrong: %s: error %.3g, at most %.3g is right\n",
                        program_facts()->name, result->checks[index].what, result->checks[index].error,
                        result->checks[index].tolerance);
        if (!finite_figures(result))
            fprintf(stderr, "%s: a figure is not finite\n", program_facts()->name);
        if (result->check_count == 0 || result->row_count == 0)
            fprintf(stderr, "%s: nothing was measured or checked\n", program_facts()->name);
    }
    MPI_Bcast(&passed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    binding_free(bindings);
    free_result(result);
    MPI_Finalize();
    return passed ? EXIT_SUCCESS : EXIT_CHECK_FAILED;
}
