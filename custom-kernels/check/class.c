#include "class.h"

#include "fail.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where in which file, for messages. */
struct place {
    const char *path;
    int line;
};

static _Noreturn void bad(const struct place *place, const char *what) {
    fail("%s, line %d: %s: make the class again by plumb calibrate --nodes", place->path, place->line, what);
}

#define ADD(array, count, element)                                                                           \
    do {                                                                                                     \
        (array) = grow((array), (count), sizeof *(array));                                                   \
        (array)[(count)++] = (element);                                                                      \
    } while (0)

static double number(const struct place *place, const char *word) {
    char *end;
    errno = 0;
    double value = word ? strtod(word, &end) : NAN;
    if (!word || end == word || *end || errno || !isfinite(value))
        bad(place, "a number is missing");
    return value;
}

static int whole(const struct place *place, const char *word) {
    double value = number(place, word);
    if (value != floor(value) || value < 0 || value > 1e6)
        bad(place, "a whole number is missing");
    return (int)value;
}

static char *word_of(const struct place *place, char **rest) {
    char *word = strsep(rest, " ");
    if (!word || !*word)
        bad(place, "a word is missing");
    return word;
}

static double limit_of(const struct place *place, const char *word) {
    return word && !strcmp(word, "none") ? NAN : number(place, word);
}

static struct budget *budget_of(struct class *class, double seconds) {
    for (int index = 0; index < class->budget_count; index++)
        if (class->budgets[index].seconds == seconds)
            return &class->budgets[index];
    return NULL;
}

static void read_budget(struct class *class, const struct place *place, char *rest) {
    if (class->budget_count == MOST_BUDGETS)
        bad(place, "too many budgets");
    struct budget *budget = &class->budgets[class->budget_count++];
    budget->seconds = number(place, word_of(place, &rest));
    budget->rounds = whole(place, rest);
    if (budget->rounds < 1 || budget->rounds > MOST_ROUNDS || budget->rounds % 2 == 0 || budget->seconds < 1)
        bad(place, "not an odd number of rounds and their seconds");
}

static void read_limit(struct class *class, const struct place *place, char *rest) {
    struct budget *budget = budget_of(class, number(place, word_of(place, &rest)));
    enum figure figure = figure_named(word_of(place, &rest));
    if (!budget || figure == FIGURES)
        bad(place, "no such budget or figure");
    struct limit *limit = &budget->limit[figure];
    limit->given = true;
    limit->member = limit_of(place, word_of(place, &rest));
    limit->other = limit_of(place, word_of(place, &rest));
    limit->doubt = limit_of(place, word_of(place, &rest));
    limit->found = limit_of(place, rest);
}

static void read_jobs(struct class *class, const struct place *place, char *rest) {
    bool known = !strcmp(word_of(place, &rest), HEALTH_SCRIPT);
    class->scheduler = word_of(place, &rest);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    if (!known || class->scheduler[strspn(class->scheduler, letters)] || !rest || strcmp(rest, "jobs") != 0)
        bad(place, "only 'jobs " HEALTH_SCRIPT " SCHEDULER jobs' is asked for jobs");
}

static void read_line(struct class *class, const struct place *place, const char *kind, char *rest) {
    if (!strcmp(kind, "name"))
        class->name = word_of(place, &rest);
    else if (!strcmp(kind, "made"))
        class->made = word_of(place, &rest);
    else if (!strcmp(kind, "rate"))
        class->rate = number(place, rest);
    else if (!strcmp(kind, "tolerance"))
        class->tolerance = number(place, rest);
    else if (!strcmp(kind, "cpu")) {
        int cpu = whole(place, word_of(place, &rest));
        ADD(class->cores, class->core_count, ((struct core){cpu, whole(place, rest)}));
    } else if (!strcmp(kind, "pair")) {
        int first = whole(place, word_of(place, &rest));
        ADD(class->pairs, class->pair_count, ((struct pair){{first, whole(place, rest)}}));
    } else if (!strcmp(kind, "member"))
        ADD(class->members, class->member_count, word_of(place, &rest));
    else if (!strcmp(kind, "fact")) {
        const char *name = word_of(place, &rest);
        ADD(class->facts, class->fact_count, ((struct named){name, rest ? rest : ""}));
    } else if (!strcmp(kind, "idle"))
        (void)number(place, rest);
    else if (!strcmp(kind, "room")) {
        const char *path = word_of(place, &rest);
        ADD(class->rooms, class->room_count, ((struct room){path, number(place, rest)}));
    } else if (!strcmp(kind, "budget"))
        read_budget(class, place, rest);
    else if (!strcmp(kind, "limit"))
        read_limit(class, place, rest);
    else if (!strcmp(kind, "jobs"))
        read_jobs(class, place, rest);
    else
        bad(place, "it is not known here");
}

static char *whole_file(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file)
        fail("%s: the class cannot be read: %s", path, strerror(errno));
    char *text = NULL;
    size_t size = 0;
    ssize_t got = getdelim(&text, &size, '\0', file);
    int fault = ferror(file) ? errno : 0;
    fclose(file);
    if (got < 0)
        fail("%s: %s", path, fault ? strerror(fault) : "the class is empty: make it again");
    return text; /* the class points into it, to the end of the program */
}

static bool has_core(const struct class *class, int cpu) {
    for (size_t index = 0; index < class->core_count; index++)
        if (class->cores[index].cpu == cpu)
            return true;
    return false;
}

/* Each core in one pair at most: the pairs are measured at the same time. */
static void check_pairs(const struct class *class, const struct place *place) {
    for (size_t index = 0; index < 2 * class->pair_count; index++) {
        int cpu = class->pairs[index / 2].cpu[index % 2];
        if (!has_core(class, cpu))
            bad(place, "a pair names a CPU that is not measured");
        for (size_t other = 0; other < index; other++)
            if (class->pairs[other / 2].cpu[other % 2] == cpu)
                bad(place, "two pairs have the same CPU");
    }
}

void class_read(struct class *class, const char *path) {
    *class = (struct class){.name = "?", .made = "?", .rate = NAN, .tolerance = NAN};
    struct place place = {path, 0};
    char *text = whole_file(path), *line;
    bool ended = false;
    while ((line = strsep(&text, "\n"))) {
        place.line++;
        if (!*line || *line == '#')
            continue;
        if (ended)
            bad(&place, "there is something behind the end");
        char *rest = line;
        const char *kind = strsep(&rest, " ");
        if (place.line == 1 && (strcmp(kind, "plumb-class") != 0 || !rest || strcmp(rest, "1") != 0))
            bad(&place, "this is not a class of this version of plumb-check");
        if (place.line == 1)
            continue;
        if (!strcmp(kind, "end"))
            ended = true;
        else
            read_line(class, &place, kind, rest);
    }
    if (!ended)
        bad(&place, "the file is not whole: its last line is not 'end'");
    if (class->core_count == 0 || class->budget_count == 0)
        bad(&place, "there is no 'cpu', or no 'budget'");
    check_pairs(class, &place);
}

const struct budget *class_budget(const struct class *class, double seconds) {
    char known[256] = "";
    for (int index = 0; index < class->budget_count; index++) {
        if (class->budgets[index].seconds == seconds)
            return &class->budgets[index];
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%g", index ? ", " : "", class->budgets[index].seconds);
    }
    fail("--seconds %g: the class has budgets of %s seconds", seconds, known);
}

bool class_has(const struct class *class, const char *node) {
    for (size_t index = 0; index < class->member_count; index++)
        if (!strcmp(class->members[index], node))
            return true;
    return false;
}
