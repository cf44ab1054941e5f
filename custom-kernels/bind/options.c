#include "options.h"

#include "fail.h"
#include "numbers.h"
#include "placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "plumb-bind --placement P [--threads T] [--memory M] [--witness DIR] [--profile DIR] [--output DIR]\n"
    "           -- PROGRAM ARG...\n"
    "plumb-bind --placement P [--threads T] [--memory M] [--ranks N] [--topology FILE.xml|SYNTHETIC]\n"
    "           [--machine NAME] [--allowed LIST] --print\n"
    "plumb-bind --export-topology FILE.xml [--topology FILE.xml|SYNTHETIC]\n"
    "plumb-bind --devices [--topology FILE.xml|SYNTHETIC]\n"
    "plumb-bind --list\n"
    "\n"
    "Turns a placement into CPUs and memory nodes. Started by an MPI launcher it binds one rank and "
    "executes\n"
    "PROGRAM; with --print it writes the node's plan as JSON and runs nothing. All indices are the "
    "operating\n"
    "system's.\n"
    "\n"
    "Memory:     local interleave node:N remote firsttouch (default: local; firsttouch for none)\n"
    "\n"
    "  --threads T           threads a rank; default: what fills the rank's object, 1 if that is a core\n"
    "  --ranks N             ranks on the node, with --print; default: as many as fit\n"
    "  --topology T          an hwloc XML file or synthetic description instead of this host, with --print\n"
    "  --machine NAME        what messages call the machine of --topology\n"
    "  --allowed LIST        use these CPUs only, such as 0-6,8, with --print\n"
    "  --witness DIR         preload libplumbwitness.so, which writes what really happened to DIR\n"
    "  --profile DIR         preload libplumbprofile.so, which writes what the rank spends in MPI to DIR\n"
    "  --output DIR          send the rank's standard output to DIR/HOST.PID.out, not through the launcher\n"
    "  --export-topology F   write the topology as hwloc XML; - is standard output\n"
    "  --devices             write GPUs, network cards and NVMe drives, and the ways between them, as JSON\n"
    "  --list                write all placements as JSON\n"
    "Exit status: 2 for anything that cannot be satisfied, 126 or 127 if PROGRAM cannot be executed.\n";

static unsigned count_option(const char *name, const char *value) {
    unsigned number;
    if (!parse_number(value, &number) || number == 0)
        fail("%s: '%s' is not a whole number from 1 to %d", name, value, MAX_NUMBER);
    return number;
}

/* Store "--name value" or "--name=value"; returns how many words that took, 0 if `word` is no such option. */
static int take_value(struct options *options, const char *word, const char *next) {
    const struct {
        const char *name, **text;
        unsigned *count;
    } known[] = {
        {"--placement", &options->placement, NULL},
        {"--memory", &options->memory, NULL},
        {"--topology", &options->topology, NULL},
        {"--machine", &options->machine, NULL},
        {"--allowed", &options->allowed, NULL},
        {"--witness", &options->witness, NULL},
        {"--output", &options->output, NULL},
        {"--threads", NULL, &options->threads},
        {"--profile", &options->profile, NULL},
        {"--ranks", NULL, &options->ranks},
        {"--export-topology", &options->export_file, NULL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].name);
        if (strncmp(word, known[i].name, length) || (word[length] && word[length] != '='))
            continue;
        bool joined = word[length] == '=';
        const char *value = joined ? word + length + 1 : next;
        if (!value || !*value || (!joined && !strcmp(value, "--")))
            fail("%s needs a value", known[i].name);
        if (known[i].text)
            *known[i].text = value;
        else
            *known[i].count = count_option(known[i].name, value);
        return joined ? 1 : 2;
    }
    return 0;
}

static bool take_flag(struct options *options, const char *word) {
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        fputs(help, stdout);
        fputs("Placements: ", stdout);
        write_names(" ", stdout);
        putchar('\n');
        exit(EXIT_SUCCESS);
    }
    if (!strcmp(word, "--list"))
        return options->list = true;
    if (!strcmp(word, "--devices"))
        return options->devices = true;
    if (!strcmp(word, "--print"))
        return options->print = true;
    return false;
}

static void check_print(const struct options *options) {
    if (options->program)
        fail("--print runs nothing: leave out '-- %s'", options->program[0]);
    if (options->witness)
        fail("--print runs nothing: leave out --witness");
    if (options->profile)
        fail("--print runs nothing: leave out --profile");
    if (options->output)
        fail("--print runs nothing: leave out --output");
}

static void check_run(const struct options *options) {
    const char *only_print = options->topology  ? "--topology"
                             : options->machine ? "--machine"
                             : options->allowed ? "--allowed"
                             : options->ranks   ? "--ranks"
                                                : NULL;
    if (only_print)
        fail("%s goes with --print only: a real start uses this host and its launcher", only_print);
    if (!options->program)
        fail("no program to run: write -- PROGRAM ARG... at the end, or --print");
}

static void check(const struct options *options) {
    if (options->list) {
        if (options->placement || options->print || options->program || options->export_file ||
            options->devices)
            fail("--list goes alone");
        return;
    }
    if (options->devices) {
        if (options->placement || options->print || options->program || options->allowed ||
            options->export_file)
            fail("--devices goes with --topology only");
        return;
    }
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
