#include "program.h"
#include "result_data.h"
#include "timer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Members of a JSON object or array: a comma before all but the first. */
struct list {
    int count;
};

static void next(struct list *list) {
    if (list->count++)
        putchar(',');
}

static void print_text(const char *text) {
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (*at < ' ' || *at > '~')
            printf("\\u%04x", *at);
        else
            putchar(*at);
    }
    putchar('"');
}

static void print_number(double value) {
    if (isfinite(value))
        printf("%.17g", value);
    else
        printf("null");
}

static void key(struct list *list, const char *name) {
    next(list);
    print_text(name);
    putchar(':');
}

static void print_parameters(const struct row *row) {
    struct list list = {0};
    putchar('{');
    for (int index = 0; index < row->parameter_count; index++) {
        const struct parameter *parameter = &row->parameters[index];
        key(&list, parameter->name);
        if (parameter->text)
            print_text(parameter->text);
        else
            printf("%lld", parameter->integer);
    }
    putchar('}');
}

static void print_figure(const struct row *row, const struct figure *figure) {
    struct list list = {0};
    putchar('{');
    key(&list, "metric"), print_text(figure->name);
    key(&list, "value"), print_number(figure->value);
    key(&list, "unit"), print_text(figure->unit);
    key(&list, "better"), print_text(figure->better == LOWER_IS_BETTER ? "lower" : "higher");
    key(&list, "params"), print_parameters(row);
    key(&list, "samples"), printf("%ld", figure->samples);
    key(&list, "limit"), print_number(figure->limit);
    putchar('}');
}

static void print_measurements(const struct result *result) {
    struct list list = {0};
    putchar('[');
    for (int index = 0; index < result->row_count; index++)
        for (int number = 0; number < result->rows[index]->figure_count; number++) {
            next(&list);
            putchar('\n');
            print_figure(result->rows[index], &result->rows[index]->figures[number]);
        }
    putchar(']');
}

static void print_checks(const struct result *result) {
    struct list list = {0};
    putchar('[');
    for (int index = 0; index < result->check_count; index++) {
        const struct check *check = &result->checks[index];
        struct list members = {0};
        next(&list);
        putchar('{');
        key(&members, "what"), print_text(check->what);
        key(&members, "passed"), printf(check->passed ? "true" : "false");
        key(&members, "error"), print_number(check->error);
        key(&members, "tolerance"), print_number(check->tolerance);
        putchar('}');
    }
    putchar(']');
}

static void print_bindings(const struct binding *bindings) {
    struct list list = {0};
    putchar('[');
    for (int rank = 0; rank < program_ranks(); rank++) {
        struct list members = {0};
        next(&list);
        printf("\n{");
        key(&members, "rank"), printf("%d", rank);
        key(&members, "host"), print_text(bindings[rank].host);
        key(&members, "threads"), printf("%d", bindings[rank].threads);
        key(&members, "cpus"), print_text(bindings[rank].cpus);
        putchar('}');
    }
    putchar(']');
}

static void print_arguments(void) {
    struct list list = {0};
    putchar('{');
    for (const struct argument *argument = program_facts()->arguments; argument->name; argument++) {
        char value[1024];
        argument_text(argument, value, sizeof value);
        key(&list, argument->name + strspn(argument->name, "-"));
        print_text(value);
    }
    putchar('}');
}

static void print_library(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, major, minor;
    struct list list = {0};
    MPI_Get_library_version(version, &length);
    MPI_Get_version(&major, &minor);
    version[strcspn(version, "\r\n")] = '\0';
    putchar('{');
    key(&list, "library"), print_text(version);
    key(&list, "standard"), printf("\"%d.%d\"", major, minor);
    key(&list, "thread_level"), print_text(program_level());
    putchar('}');
}

static void print_timer(void) {
    const struct timer *timer = timer_facts();
    struct list list = {0};
    putchar('{');
    key(&list, "source"), print_text(timer->source);
    key(&list, "ns_per_tick"), print_number(timer->ns_per_tick);
    key(&list, "resolution_ns"), print_number(timer->resolution_ns);
    key(&list, "cost_ns"), print_number(timer->cost_ns);
    putchar('}');
}

void result_print_json(const struct result *result, const struct binding *bindings) {
    struct list list = {0}, notes = {0};
    putchar('{');
    key(&list, "schema"), putchar('1');
    key(&list, "kernel"), print_text(program_facts()->name);
    key(&list, "ranks"), printf("%d", program_ranks());
    key(&list, "threads"), printf("%d", bindings[0].threads);
    key(&list, "mpi"), print_library();
    key(&list, "timer"), print_timer();
    key(&list, "arguments"), print_arguments();
    key(&list, "binding"), print_bindings(bindings);
    key(&list, "model"), print_text(result->model ? result->model : "");
    key(&list, "checks"), print_checks(result);
    key(&list, "notes"), putchar('[');
    for (int index = 0; index < result->note_count; index++)
        next(&notes), print_text(result->notes[index]);
    putchar(']');
    key(&list, "passed"), printf(result_passed(result) ? "true" : "false");
    key(&list, "measurements"), print_measurements(result);
    printf("}\n");
}
