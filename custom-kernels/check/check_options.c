#include "check_options.h"

#include "fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "plumb-check --class FILE [--seconds S] [--form F] [--beside-jobs] [--state FOLDER] [--output FILE]\n"
    "plumb-check --class FILE --detach|--last [--form F] [--state FOLDER] [--output FILE]\n"
    "plumb-check --class FILE --plan\n"
    "plumb-check --class FILE --collect FOLDER [--checks N] [--seconds S] [--beside-jobs]\n"
    "\n"
    "Is this node as fast as its kind? Measures for S seconds at most, and judges by a class, which\n"
    "plumb calibrate --nodes makes. What is not sure is never said to be bad.\n"
    "\n"
    "  --class FILE      the class of this node\n"
    "  --seconds S       the time that all of it may take (default: 25; --plan lists what there is)\n"
    "  --form F          nhc: nothing if the node is fine or in doubt, else one line (default);\n"
    "                    nagios, json, openmetrics, text\n"
    "  --plan            what is measured in which time, and from which slowdown on it is found\n"
    "  --detach          begin in the background, unless a check runs; print the last result at once\n"
    "  --last            print the last result at once, with its age\n"
    "  --beside-jobs     measure although jobs are on the node, or nobody can say; they are disturbed\n"
    "  --state FOLDER    where the last result is kept (default: /run/plumb-check; of a user\n"
    "                    $XDG_RUNTIME_DIR/plumb-check)\n"
    "  --output FILE     write the result to FILE in one step, not to standard output\n"
    "  --node NAME       this node, as class and scheduler call it (default: its name up to the first dot)\n"
    "  --collect FOLDER  judge nothing: add each check as a line to FOLDER/NODE.jsonl, for a class\n"
    "  --checks N        how many, each in a new process (with --collect; default: 1)\n"
    "  --measured FILE   measure nothing: take rounds from FILE, lines 'FIGURE VALUE FIGURE VALUE ...'\n"
    "  --help            write this text\n"
    "Exit status: 0 fine or in doubt, 1 bad (nagios: 0 fine, 1 in doubt, 2 bad), 2 bad input (nagios: 3).\n";

enum { NAGIOS_UNKNOWN = 3 };

const char *const form_words[FORMS] = {"nhc", "nagios", "json", "openmetrics", "text"};

static double number_of(const char *option, const char *word, double least, double most) {
    char *end;
    double value = strtod(word, &end);
    if (end == word || *end || !(value >= least && value <= most))
        fail("%s: '%s' is not a number from %g to %g", option, word, least, most);
    return value;
}

static enum form form_of(const char *word) {
    for (enum form form = 0; form < FORMS; form++)
        if (!strcmp(word, form_words[form]))
            return form;
    fail("--form: '%s' is none of nhc, nagios, json, openmetrics, text", word);
}

/* An option without a value; false if it is none of these. */
static bool flag(struct options *options, const char *word) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--plan", &options->plan},
                 {"--last", &options->last},
                 {"--detach", &options->detach},
                 {"--beside-jobs", &options->beside_jobs}};
    for (size_t index = 0; index < sizeof flags / sizeof *flags; index++)
        if (!strcmp(word, flags[index].name))
            return *flags[index].flag = true;
    return false;
}

static void value(struct options *options, const char *option, const char *word) {
    const struct {
        const char *name, **text;
    } texts[] = {{"--class", &options->class},       {"--state", &options->state},
                 {"--node", &options->node},         {"--output", &options->output},
                 {"--measured", &options->measured}, {"--collect", &options->collect}};
    for (size_t index = 0; index < sizeof texts / sizeof *texts; index++)
        if (!strcmp(option, texts[index].name)) {
            if (!word || !*word)
                fail("%s needs a value", option);
            *texts[index].text = word;
            return;
        }
    bool known = !strcmp(option, "--seconds") || !strcmp(option, "--form") || !strcmp(option, "--checks");
    if (!known || !word)
        fail(known ? "%s needs a value" : "unknown option '%s': --help lists them", option);
    if (!strcmp(option, "--seconds"))
        options->seconds = number_of(option, word, 1, 1e5);
    else if (!strcmp(option, "--checks"))
        options->checks = (int)number_of(option, word, 1, 1000);
    else
        options->form = form_of(word);
}

/* This host's name up to the first dot. */
static const char *own_name(void) {
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) != 0 || !*name)
        fail("this host has no name: give --node");
    name[strcspn(name, ".")] = '\0';
    return text("%s", name);
}

static const char *own_state(void) {
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (geteuid() == 0)
        return "/run/plumb-check";
    return folder && *folder ? text("%s/plumb-check", folder) : NULL;
}

/* Nagios takes 2 for a node that is bad: bad input is 3, unknown. */
static void nagios_unknown(int status) {
    (void)status;
    puts("PLUMB UNKNOWN - nothing could be checked: the line on standard error says why");
    exit(NAGIOS_UNKNOWN);
}

void options_read(struct options *options, int argc, char **argv) {
    *options = (struct options){.seconds = 25, .form = NHC, .checks = 1};
    for (int index = 1; index + 1 < argc; index++)
        if (!strcmp(argv[index], "--form") && !strcmp(argv[index + 1], "nagios"))
            fail_calls(nagios_unknown);
    for (int index = 1; index < argc; index++) {
        if (!strcmp(argv[index], "--help")) {
            fputs(help, stdout);
            exit(0);
        }
        if (!flag(options, argv[index])) {
            value(options, argv[index], argv[index + 1]);
            index++;
        }
    }
    if (!options->class)
        fail("--class is missing: plumb calibrate --nodes makes a class");
    if (options->plan + options->last + options->detach + (options->collect != NULL) > 1)
        fail("--plan, --last, --detach and --collect exclude each other");
    if (!options->node)
        options->node = own_name();
    if (options->collect && (strchr(options->node, '/') || *options->node == '.'))
        fail("--node: '%s' cannot be a file's name", options->node);
    if (!options->state)
        options->state = own_state();
    if (!options->state && (options->last || options->detach))
        fail("nowhere to keep the last result: give --state FOLDER");
}
