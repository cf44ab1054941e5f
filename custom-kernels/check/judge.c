#include "judge.h"

#include "fail.h"
#include "samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

static void add(const char **lines, int *count, const char *line) {
    if (*count < MOST_LINES)
        lines[(*count)++] = line;
}

void verdict_found(struct verdict *verdict, const char *line) {
    add(verdict->found, &verdict->found_count, line);
    verdict->state = FOUND;
}

void verdict_doubt(struct verdict *verdict, const char *line) {
    add(verdict->doubts, &verdict->doubt_count, line);
    verdict->state = verdict->state < DOUBT ? DOUBT : verdict->state;
}

void verdict_remark(struct verdict *verdict, const char *line) {
    add(verdict->remarks, &verdict->remark_count, line);
}

void verdict_busy(struct verdict *verdict, const char *line) {
    verdict_remark(verdict, line);
    verdict->state = verdict->state < BUSY ? BUSY : verdict->state;
}

const char *state_word(enum state state) {
    static const char *const words[] = {[FINE] = "ok", [BUSY] = "busy", [DOUBT] = "doubt", [FOUND] = "bad"};
    return words[state];
}

char *value_text(enum figure figure, double value) {
    return text("%.4g %s", value, figure_facts[figure].unit);
}

/* Whether `value` is worse than `limit`; false for a limit that there is not. */
static bool beyond(enum figure figure, double value, double limit) {
    return figure_facts[figure].higher ? value < limit : value > limit;
}

/* How many times worse than a limit a value has to be, after what other work took on one core, that nothing
 * but a slow node explains it (tests/rates/caution.py). */
static const double far = 3.0;
/* A node as slow gets through few rounds: most of those that it did, and so many, show it. */
enum { LEAST_FAR = 3 };

/* Whether `value` is as far beyond `limit`, beside other work of `others` CPUs. */
static bool surely(enum figure figure, double value, double limit, double others) {
    double times = figure_facts[figure].higher ? limit / value : value / limit;
    return times * (1.0 - others) > far;
}

/* The place that the most rounds beyond the limit name. */
static void find_place(struct judged *judged, enum figure figure, const struct round *rounds, int count,
                       double limit) {
    int most = 0;
    judged->place[0] = judged->place[1] = -1;
    for (int first = 0; first < count; first++) {
        const struct reading *one = &rounds[first].of[figure];
        int same = 0;
        if (!one->known || !beyond(figure, one->value, limit))
            continue;
        for (int other = 0; other < count; other++)
            same += rounds[other].of[figure].known && beyond(figure, rounds[other].of[figure].value, limit) &&
                    rounds[other].of[figure].place[0] == one->place[0];
        if (same > most) {
            most = same;
            memcpy(judged->place, one->place, sizeof judged->place);
        }
    }
}

static const char *place_text(enum figure figure, const int place[2]) {
    if (place[0] < 0)
        return "";
    return place[1] < 0 ? text(" on %s %d", figure_facts[figure].place, place[0])
                        : text(" between %s %d and %d", figure_facts[figure].place, place[0], place[1]);
}

/* "memory is 81 GB/s (limit 95 GB/s)" */
static const char *slow_text(enum figure figure, const struct judged *judged) {
    char *value = value_text(figure, judged->value), *limit = value_text(figure, judged->limit);
    return text("%s is %s%s (limit %s, %d of %d rounds)", figure_facts[figure].name, value,
                place_text(figure, judged->place), limit, judged->beyond + judged->beyond_disturbed,
                judged->rounds);
}

static void judge_figure(struct verdict *verdict, enum figure figure, const struct budget *budget,
                         const struct round *rounds, int count, bool member) {
    struct judged *judged = &verdict->of[figure];
    const struct limit *limit = &budget->limit[figure];
    double values[MOST_ROUNDS];
    int needed = budget->rounds / 2 + 1;
    judged->limit = limit->given ? (member ? limit->member : limit->other) : NAN;
    bool promised = !isnan(judged->limit);
    double edge = promised ? judged->limit : limit->given ? limit->doubt : NAN;
    int sure = 0;
    for (int index = 0; index < count; index++) {
        const struct reading *reading = &rounds[index].of[figure];
        if (!reading->known)
            continue;
        values[judged->rounds++] = reading->value;
        if (beyond(figure, reading->value, judged->limit))
            *(rounds[index].others > MOST_OTHERS ? &judged->beyond_disturbed : &judged->beyond) += 1;
        sure += surely(figure, reading->value, edge, rounds[index].others);
    }
    judged->known = judged->rounds > 0;
    if (!judged->known) {
        if (limit->given)
            verdict_doubt(verdict, text("%s was not measured", figure_facts[figure].name));
        return;
    }
    judged->value = summarize(values, (size_t)judged->rounds).median;
    find_place(judged, figure, rounds, count, edge);
    if (judged->beyond >= needed) {
        judged->state = FOUND;
        verdict_found(verdict, slow_text(figure, judged));
    } else if (sure >= LEAST_FAR && 2 * sure > judged->rounds) {
        judged->state = FOUND;
        char *value = value_text(figure, judged->value), *usual = value_text(figure, edge);
        verdict_found(verdict, text("%s is %s%s, usual is up to %s: far too slow in %d of %d rounds",
                                    figure_facts[figure].name, value, place_text(figure, judged->place),
                                    usual, sure, judged->rounds));
    } else if (judged->beyond + judged->beyond_disturbed >= needed) {
        judged->state = DOUBT;
        verdict_doubt(verdict, text("%s, but beside other work", slow_text(figure, judged)));
    } else if (limit->given && beyond(figure, judged->value, limit->doubt)) {
        judged->state = DOUBT;
        char *value = value_text(figure, judged->value), *usual = value_text(figure, limit->doubt);
        verdict_doubt(verdict,
                      text("%s is %s%s, usual is up to %s: %s", figure_facts[figure].name, value,
                           place_text(figure, judged->place), usual,
                           promised ? "needs a longer check" : "the class cannot judge it in this time"));
    } else if (limit->given && judged->rounds < needed) {
        judged->state = DOUBT;
        verdict_doubt(verdict,
                      text("%s: %d of %d rounds", figure_facts[figure].name, judged->rounds, budget->rounds));
    }
}

void judge_rounds(struct verdict *verdict, const struct class *class, const struct budget *budget,
                  const struct round *rounds, int count, bool member) {
    bool any = false;
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        judge_figure(verdict, figure, budget, rounds, count, member);
        any |= budget->limit[figure].given;
    }
    if (!any)
        verdict_doubt(verdict, text("class %s has no limits yet", class->name));
    else if (!member)
        verdict_remark(verdict, text("class %s was not made of this node", class->name));
}

void judge_facts(struct verdict *verdict, const struct class *class, const struct facts *facts) {
    for (size_t index = 0; index < class->fact_count; index++) {
        const struct named *fact = &class->facts[index];
        const char *here = facts_value(facts, fact->name);
        if (!here && facts->dimms_refused && !strcmp(fact->name, "memory.modules"))
            verdict_remark(verdict, "memory.modules cannot be read without root");
        else if (!here)
            verdict_found(verdict, text("%s is not there, not '%s'", fact->name, fact->value));
        else if (!fact_equal(fact->name, fact->value, here))
            verdict_found(verdict, text("%s is '%s', not '%s'", fact->name, here, fact->value));
    }
}

void judge_rooms(struct verdict *verdict, const struct class *class) {
    for (size_t index = 0; index < class->room_count; index++) {
        const struct room *room = &class->rooms[index];
        struct statvfs found;
        if (statvfs(room->path, &found) != 0) {
            verdict_found(verdict, text("%s: %s", room->path, strerror(errno)));
            continue;
        }
        double left = (double)found.f_bavail * (double)found.f_frsize;
        if (left < room->bytes)
            verdict_found(verdict, text("%s has %.3g GiB free, %.3g GiB are needed", room->path,
                                        left / 0x1p30, room->bytes / 0x1p30));
    }
}
