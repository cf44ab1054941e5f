#include "json.h"
#include "program.h"
#include "result_data.h"
#include "timer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_real(struct json *out, const char *key, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.17g", value);
    json_raw(out, key, isfinite(value) ? digits : "null");
}

static void write_parameters(struct json *out, const struct row *row) {
    json_open(out, "params", '{');
    for (int index = 0; index < row->parameter_count; index++) {
        const struct parameter *parameter = &row->parameters[index];
        if (parameter->text)
            json_text(out, parameter->name, parameter->text);
        else
            json_int(out, parameter->name, parameter->integer);
    }
    json_close(out, '}');
}

static void write_figure(struct json *out, const struct row *row, const struct figure *figure) {
    json_newline(out);
    json_open(out, NULL, '{');
    json_text(out, "metric", figure->name);
    write_real(out, "value", figure->value);
    json_text(out, "unit", figure->unit);
    json_text(out, "better", figure->better == LOWER_IS_BETTER ? "lower" : "higher");
    write_parameters(out, row);
    json_int(out, "samples", figure->samples);
    write_real(out, "limit", figure->limit);
    json_close(out, '}');
}

static void write_measurements(struct json *out, const struct result *result) {
    json_open(out, "measurements", '[');
    for (int index = 0; index < result->row_count; index++)
        for (int number = 0; number < result->rows[index]->figure_count; number++)
            write_figure(out, result->rows[index], &result->rows[index]->figures[number]);
    json_close(out, ']');
}

static void write_checks(struct json *out, const struct result *result) {
    json_open(out, "checks", '[');
    for (int index = 0; index < result->check_count; index++) {
        const struct check *check = &result->checks[index];
        json_open(out, NULL, '{');
        json_text(out, "what", check->what);
        json_bool(out, "passed", check->passed);
        write_real(out, "error", check->error);
        write_real(out, "tolerance", check->tolerance);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_bindings(struct json *out, const struct binding *bindings) {
    json_open(out, "binding", '[');
    for (int rank = 0; rank < program_ranks(); rank++) {
        json_newline(out);
        json_open(out, NULL, '{');
        json_int(out, "rank", rank);
        json_text(out, "host", bindings[rank].host);
        json_int(out, "threads", bindings[rank].threads);
        json_text(out, "cpus", bindings[rank].cpus);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_notes(struct json *out, const char *key, const struct result *result, bool remarks_only) {
    json_open(out, key, '[');
    for (int index = 0; index < result->note_count; index++)
        if (result->notes[index].remark || !remarks_only)
            json_text(out, NULL, result->notes[index].text);
    json_close(out, ']');
}

static void write_arguments(struct json *out) {
    json_open(out, "arguments", '{');
    for (const struct argument *argument = program_facts()->arguments; argument->name; argument++) {
        char value[1024];
        argument_text(argument, value, sizeof value);
        json_text(out, argument->name + strspn(argument->name, "-"), value);
    }
    json_close(out, '}');
}

static void write_library(struct json *out) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING], standard[32];
    int length, major, minor;
    MPI_Get_library_version(library, &length);
    MPI_Get_version(&major, &minor);
    library[strcspn(library, "\r\n")] = '\0';
    snprintf(standard, sizeof standard, "%d.%d", major, minor);
    json_open(out, "mpi", '{');
    json_text(out, "library", library);
    json_text(out, "standard", standard);
    json_text(out, "thread_level", program_level());
    json_close(out, '}');
}

static void write_timer(struct json *out) {
    const struct timer *timer = timer_facts();
    json_open(out, "timer", '{');
    json_text(out, "source", timer->source);
    write_real(out, "ns_per_tick", timer->ns_per_tick);
    write_real(out, "resolution_ns", timer->resolution_ns);
    write_real(out, "cost_ns", timer->cost_ns);
    json_close(out, '}');
}

static void write_work(struct json *out, const struct work *work) {
    static const char *const names[COUNTERS] = {"instructions", "cycles", "cache_misses"};
    json_open(out, "work", '{');
    write_real(out, "flop", work->flop);
    write_real(out, "bytes", work->bytes);
    if (work->missing[0])
        json_text(out, "missing", work->missing);
    else {
        json_open(out, "counted", '{');
        for (int counter = 0; counter < COUNTERS; counter++)
            write_real(out, names[counter], work->counted[counter]);
        json_int(out, "line_bytes", work->line_bytes);
        json_close(out, '}');
    }
    json_close(out, '}');
}

bool result_write_json(const struct result *result, const struct binding *bindings, bool passed) {
    struct json out;
    json_start(&out, STDOUT_FILENO);
    json_open(&out, NULL, '{');
    json_int(&out, "schema", 1);
    json_text(&out, "kernel", program_facts()->name);
    json_int(&out, "ranks", program_ranks());
    json_int(&out, "threads", bindings[0].threads);
    write_library(&out);
    write_timer(&out);
    write_arguments(&out);
    write_bindings(&out, bindings);
    json_text(&out, "model", result->model ? result->model : "");
    write_checks(&out, result);
    write_notes(&out, "notes", result, false);
    write_notes(&out, "remarks", result, true);
    json_bool(&out, "passed", passed);
    if (program_facts()->work)
        write_work(&out, &result->work);
    write_measurements(&out, result);
    json_close(&out, '}');
    return json_finish(&out) == 0;
}
