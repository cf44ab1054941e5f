/* What a check came to, and its forms. */
#ifndef PLUMB_CHECK_OUTCOME_H
#define PLUMB_CHECK_OUTCOME_H

#include "check_options.h"
#include "class.h"
#include "judge.h"

struct outcome {
    const struct class *class;
    const struct budget *budget;
    const char *node;
    bool member;
    double time;    /* Unix, of the begin */
    double seconds; /* that it took */
    struct verdict verdict;
    const struct facts *facts;
    const struct round *rounds;
    int count;
};

/* The outcome in a form; `age` is printed where its age belongs. The caller frees it. */
char *outcome_text(const struct outcome *outcome, enum form form, const char *age);

/* The exit status that a form has for a state. */
int outcome_status(enum state state, enum form form);

/* One line of JSON for the collection that a class is made of: node, facts, all values of all rounds. */
char *outcome_collected(const struct outcome *outcome);

#endif
