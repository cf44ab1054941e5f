#include "options.h"

#include "fail.h"
#include "numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "plumb-bind --placement P [--threads T] [--memory M] [--witness DIR] [--output DIR] -- PROGRAM ARG...\n"
    "plumb-bind --placement P [--threads T] [--memory M] [--ranks N] [--topology FILE.xml|SYNTHETIC]\n"
    "           [--allowed LIST] --print\n"
    "plumb-bind --export-topology FILE.xml [--topology FILE.xml|SYNTHETIC]\n"
    "\n"
    "Turns a placement into CPUs and memory nodes. Started by an MPI launcher it binds one rank and "
    "executes\n"
    "PROGRAM; with --print it writes the node's plan as JSON and runs nothing. All indices are the "
    "operating\n"
    "system's.\n"
    "\n"
    "Placements: none compact scatter core l3 numa socket node smt roundrobin numa:N socket:N ways:N\n"
    "            pair:smt pair:l3 pair:numa pair:socket pair:xsocket pair:node pair:I,J\n"
    "Memory:     local interleave node:N remote firsttouch (default: local; firsttouch for none)\n"
    "\n"
    "  --threads T           threads a rank; default: what fills the rank's object, 1 if that is a core\n"
    "  --ranks N             ranks on the node, with --print; default: as many as fit\n"
    "  --topology T          an hwloc XML file or synthetic description instead of this host, with --print\n"
    "  --allowed LIST        use these CPUs only, such as 0-6,8, with --print\n"
    "  --witness DIR         preload libplumbwitness.so, which writes what really happened to DIR\n"
    "  --output DIR          send the rank's standard output to DIR/HOST.PID.out, not through the launcher\n"
    "  --export-topology F   write the topology as hwloc XML; - is standard output\n"
    "Exit status: 2 for anything that cannot be satisfied, 126 or 127 if PROGRAM cannot be executed.\n";

static const char *const with_value[] = {"--placement", "--memory",  "--topology",
                                         "--allowed",   "--witness", "--threads",
                                         "--ranks",     "--output",  "--export-topology"};

static unsigned count_option(const char *name, const char *value) {
    unsigned number;
    if (!parse_number(value, &number) || number == 0)
        fail("%s: '%s' is not a whole number from 1 to %d", name, value, MAX_NUMBER);
    return number;
}

static void store(struct options *options, const char *name, const char *value) {
    if (*value == '\0')
        fail("%s needs a value", name);
    if (!strcmp(name, "--placement"))
        options->placement = value;
    else if (!strcmp(name, "--memory"))
        options->memory = value;
    else if (!strcmp(name, "--topology"))
        options->topology = value;
    else if (!strcmp(name, "--allowed"))
        options->allowed = value;
    else if (!strcmp(name, "--witness"))
        options->witness = value;
    else if (!strcmp(name, "--output"))
        options->output = value;
    else if (!strcmp(name, "--threads"))
        options->threads = count_option(name, value);
    else if (!strcmp(name, "--ranks"))
        options->ranks = count_option(name, value);
    else
        options->export_file = value;
}

/* Store "--name value" or "--name=value"; returns how many words that took, 0 if `word` is no such option. */
static int take_value(struct options *options, const char *word, const char *next) {
    for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++) {
        const char *name = with_value[i];
        size_t length = strlen(name);
        if (strncmp(word, name, length))
            continue;
        if (word[length] == '=') {
            store(options, name, word + length + 1);
            return 1;
        }
        if (word[length] == '\0') {
            if (!next || !strcmp(next, "--"))
                fail("%s needs a value", name);
            store(options, name, next);
            return 2;
        }
    }
    return 0;
}

static bool take_flag(struct options *options, const char *word) {
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        fputs(help, stdout);
        exit(EXIT_SUCCESS);
    }
    if (!strcmp(word, "--print"))
        return options->print = true;
    return false;
}

static void check_print(const struct options *options) {
    if (options->program)
        fail("--print runs nothing: leave out '-- %s'", options->program[0]);
    if (options->witness)
        fail("--print runs nothing: leave out --witness");
    if (options->output)
        fail("--print runs nothing: leave out --output");
}

static void check_run(const struct options *options) {
    const char *only_print = options->topology  ? "--topology"
                             : options->allowed ? "--allowed"
                             : options->ranks   ? "--ranks"
                                                : NULL;
    if (only_print)
        fail("%s goes with --print only: a real start uses this host and its launcher", only_print);
    if (!options->program)
        fail("no program to run: write -- PROGRAM ARG... at the end, or --print");
}

static void check(const struct options *options) {
    if (options->export_file) {
        if (options->placement || options->print || options->program || options->allowed)
            fail("--export-topology goes with --topology only");
        return;
    }
    if (!options->placement)
        fail("no --placement given (see plumb-bind --help)");
    if (options->print)
        check_print(options);
    else
        check_run(options);
}

struct options read_options(int count, char **words) {
    struct options options = {0};
    for (int i = 1; i < count;) {
        if (!strcmp(words[i], "--")) {
            if (i + 1 < count)
                options.program = words + i + 1;
            break;
        }
        int taken = take_value(&options, words[i], i + 1 < count ? words[i + 1] : NULL);
        if (!taken && take_flag(&options, words[i]))
            taken = 1;
        if (!taken && words[i][0] == '-')
            fail("unknown option '%s' (see plumb-bind --help)", words[i]);
        if (!taken)
            fail("unexpected word '%s': the program comes after --", words[i]);
        i += taken;
    }
    check(&options);
    return options;
}
