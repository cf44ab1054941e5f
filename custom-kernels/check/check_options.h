/* The command line of plumb-check. */
#ifndef PLUMB_CHECK_OPTIONS_H
#define PLUMB_CHECK_OPTIONS_H

#include <stdbool.h>

enum form { NHC, NAGIOS, JSON, OPENMETRICS, TEXT, FORMS };

extern const char *const form_words[FORMS];

struct options {
    const char *class, *state, *node, *output, *measured, *collect;
    double seconds;
    enum form form;
    int checks;
    bool plan, last, detach, beside_jobs;
};

/* Read the command line; ends the program with one line for what is not known, and after --help. */
void options_read(struct options *options, int argc, char **argv);

#endif
