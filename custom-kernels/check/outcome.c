#include "outcome.h"

#include "fail.h"
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All lines of the verdict that matter most, in one. */
static char *summary(const struct outcome *outcome) {
    const struct verdict *verdict = &outcome->verdict;
    const char *const *lines = verdict->state == FOUND ? verdict->found : verdict->doubts;
    int count = verdict->state == FOUND   ? verdict->found_count
                : verdict->state == DOUBT ? verdict->doubt_count
                                          : 0;
    enum { SHOWN = 3 };
    const char *fine =
        verdict->state == BUSY ? verdict->remarks[verdict->remark_count - 1] : "as fast as its kind";
    char *line = text("%s", count ? lines[0] : fine);
    for (int index = 1; index < count && index < SHOWN; index++)
        line = text("%s; %s", line, lines[index]);
    return count > SHOWN ? text("%s; and %d more", line, count - SHOWN) : line;
}

int outcome_status(enum state state, enum form form) {
    if (form == NAGIOS)
        return state == FOUND ? 2 : state == DOUBT ? 1 : 0;
    return state == FOUND;
}

static void put_nhc(FILE *out, const struct outcome *outcome, const char *age) {
    if (outcome->verdict.state == FOUND)
        fprintf(out, "plumb-check: %s (%s s ago)\n", summary(outcome), age);
}

static void put_nagios(FILE *out, const struct outcome *outcome, const char *age) {
    static const char *const words[] = {
        [FINE] = "OK", [BUSY] = "OK", [DOUBT] = "WARNING", [FOUND] = "CRITICAL"};
    char *line = summary(outcome);
    for (char *at = line; *at; at++)
        *at = *at == '|' ? '/' : *at;
    fprintf(out, "PLUMB %s - %s |age=%ss", words[outcome->verdict.state], line, age);
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        const struct judged *judged = &outcome->verdict.of[figure];
        const struct figure_facts *facts = &figure_facts[figure];
        if (!judged->known)
            continue;
        fprintf(out, " %s=%.6g%s", facts->name, judged->value, facts->unit);
        if (!isnan(judged->limit)) /* "10:" alerts below 10, "10" above */
            fprintf(out, ";;%.6g%s", judged->limit, facts->higher ? ":" : "");
    }
    fputc('\n', out);
}

static void put_number(struct json *out, const char *key, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.9g", value);
    json_raw(out, key, isfinite(value) ? digits : "null");
}

static void put_lines(struct json *out, const char *key, const char *const *lines, int count) {
    json_open(out, key, '[');
    for (int index = 0; index < count; index++)
        json_text(out, NULL, lines[index]);
    json_close(out, ']');
}

static void put_facts(struct json *out, const struct facts *facts) {
    json_open(out, "facts", '{');
    for (size_t index = 0; facts && index < facts->count; index++)
        json_text(out, facts->list[index].name, facts->list[index].value);
    json_close(out, '}');
}

static void put_place(struct json *out, const int place[2]) {
    json_open(out, "place", '[');
    for (int index = 0; index < 2 && place[index] >= 0; index++)
        json_int(out, NULL, place[index]);
    json_close(out, ']');
}

static void put_values(struct json *out, const struct outcome *outcome, enum figure figure) {
    json_open(out, "rounds", '[');
    for (int index = 0; index < outcome->count; index++)
        if (outcome->rounds[index].of[figure].known)
            put_number(out, NULL, outcome->rounds[index].of[figure].value);
        else
            json_raw(out, NULL, "null");
    json_close(out, ']');
}

static void put_figures(struct json *out, const struct outcome *outcome) {
    json_open(out, "figures", '[');
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        const struct judged *judged = &outcome->verdict.of[figure];
        if (!judged->known)
            continue;
        json_newline(out);
        json_open(out, NULL, '{');
        json_text(out, "name", figure_facts[figure].name);
        json_text(out, "unit", figure_facts[figure].unit);
        json_text(out, "better", figure_facts[figure].higher ? "higher" : "lower");
        put_number(out, "value", judged->value);
        put_number(out, "limit", judged->limit);
        json_text(out, "state", state_word(judged->state));
        put_place(out, judged->place);
        put_values(out, outcome, figure);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_others(struct json *out, const struct outcome *outcome) {
    json_open(out, "others", '[');
    for (int index = 0; index < outcome->count; index++)
        put_number(out, NULL, outcome->rounds[index].others);
    json_close(out, ']');
}

static char *json_of(const struct outcome *outcome, const char *age) {
    const struct verdict *verdict = &outcome->verdict;
    struct json out;
    json_start_string(&out);
    json_open(&out, NULL, '{');
    json_int(&out, "schema", 1);
    json_text(&out, "node", outcome->node);
    json_text(&out, "class", outcome->class->name);
    json_bool(&out, "member", outcome->member);
    json_seconds(&out, "time", (long long)(outcome->time * 1e6));
    json_raw(&out, "age", age);
    json_text(&out, "state", state_word(verdict->state));
    json_text(&out, "line", summary(outcome));
    json_seconds(&out, "seconds", (long long)(outcome->seconds * 1e6));
    put_number(&out, "budget", outcome->budget->seconds);
    json_int(&out, "planned", outcome->budget->rounds);
    json_int(&out, "rounds", outcome->count);
    put_lines(&out, "bad", verdict->found, verdict->found_count);
    put_lines(&out, "doubts", verdict->doubts, verdict->doubt_count);
    put_lines(&out, "remarks", verdict->remarks, verdict->remark_count);
    put_figures(&out, outcome);
    put_others(&out, outcome);
    put_facts(&out, outcome->facts);
    json_close(&out, '}');
    char *found = json_string(&out);
    if (!found)
        fail("out of memory");
    return found;
}

/* A label's value: quotes and backslashes are escaped. */
static char *label(const char *value) {
    char *escaped = allocate(2 * strlen(value) + 1, 1), *to = escaped;
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            *to++ = '\\';
        *to++ = *value;
    }
    return escaped;
}

static void put_openmetrics(FILE *out, const struct outcome *outcome) {
    const char *node = label(outcome->node), *class = label(outcome->class->name);
    fprintf(out, "# TYPE plumb_check_state gauge\n");
    for (enum state state = FINE; state <= FOUND; state++)
        fprintf(out, "plumb_check_state{node=\"%s\",class=\"%s\",state=\"%s\"} %d\n", node, class,
                state_word(state), outcome->verdict.state == state);
    fprintf(out, "# TYPE plumb_check_time_seconds gauge\nplumb_check_time_seconds{node=\"%s\"} %.3f\n", node,
            outcome->time);
    for (int limits = 0; limits < 2; limits++) {
        fprintf(out, "# TYPE plumb_check_%s gauge\n", limits ? "limit" : "figure");
        for (enum figure figure = 0; figure < FIGURES; figure++) {
            const struct judged *judged = &outcome->verdict.of[figure];
            double value = limits ? judged->limit : judged->value;
            if (judged->known && !isnan(value))
                fprintf(out, "plumb_check_%s{node=\"%s\",figure=\"%s\",unit=\"%s\"} %.9g\n",
                        limits ? "limit" : "figure", node, figure_facts[figure].name,
                        figure_facts[figure].unit, value);
        }
    }
    fputs("# EOF\n", out);
}

static void put_lines_of_text(FILE *out, const char *word, const char *const *lines, int count) {
    for (int index = 0; index < count; index++)
        fprintf(out, "%s: %s\n", word, lines[index]);
}

static void put_text(FILE *out, const struct outcome *outcome, const char *age) {
    const struct verdict *verdict = &outcome->verdict;
    fprintf(out, "%-14s %12s %12s %-8s %6s\n", "figure", "here", "limit", "unit", "state");
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        const struct judged *judged = &verdict->of[figure];
        char limit[32] = "none";
        if (!judged->known)
            continue;
        if (!isnan(judged->limit))
            snprintf(limit, sizeof limit, "%.4g", judged->limit);
        fprintf(out, "%-14s %12.4g %12s %-8s %6s\n", figure_facts[figure].name, judged->value, limit,
                figure_facts[figure].unit, state_word(judged->state));
    }
    put_lines_of_text(out, "bad", verdict->found, verdict->found_count);
    put_lines_of_text(out, "doubt", verdict->doubts, verdict->doubt_count);
    put_lines_of_text(out, "remark", verdict->remarks, verdict->remark_count);
    fprintf(out, "%s: %s: %s (class %s, %d of %d rounds, %.1f of %g s, %s s ago)\n", outcome->node,
            state_word(verdict->state), summary(outcome), outcome->class->name, outcome->count,
            outcome->budget->rounds, outcome->seconds, outcome->budget->seconds, age);
}

char *outcome_text(const struct outcome *outcome, enum form form, const char *age) {
    char *found;
    size_t size;
    if (form == JSON)
        return text("%s\n", json_of(outcome, age));
    FILE *out = open_memstream(&found, &size);
    if (!out)
        fail("out of memory");
    switch (form) {
    case NAGIOS:
        put_nagios(out, outcome, age);
        break;
    case OPENMETRICS:
        put_openmetrics(out, outcome);
        break;
    case TEXT:
        put_text(out, outcome, age);
        break;
    default:
        put_nhc(out, outcome, age);
    }
    if (fclose(out) != 0)
        fail("out of memory");
    return found;
}

char *outcome_collected(const struct outcome *outcome) {
    char *line = json_of(outcome, "0");
    for (char *at = line; *at; at++) /* control characters in texts are escaped: these are between members */
        *at = *at == '\n' ? ' ' : *at;
    return text("%s\n", line);
}
