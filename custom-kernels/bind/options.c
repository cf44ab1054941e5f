#include "options.h"

#include "fail.h"
#include "numbers.h"
#include "placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "plumb-bind --placement P [--threads T] [--memory M] [--witness DIR] [--profile DIR] [--output DIR]\n"
    "           [--input FILE] [--allowed LIST] [--barrier FILE] [--needs LIST] -- PROGRAM ARG...\n"
    "plumb-bind --placement P [--threads T] [--memory M] [--ranks N] [--topology FILE.xml|SYNTHETIC]\n"
    "           [--machine NAME] [--allowed LIST] --print\n"
    "plumb-bind --placement P [--memory M] --check\n"
    "plumb-bind --export-topology FILE.xml [--topology FILE.xml|SYNTHETIC]\n"
    "plumb-bind --devices [--topology FILE.xml|SYNTHETIC]\n"
    "plumb-bind --list\n"
    "plumb-bind --help\n"
    "\n"
    "Turns a placement into CPUs and memory nodes. Started by an MPI launcher it binds one rank and "
    "executes\n"
    "PROGRAM; with --print it writes the node's plan as JSON and runs nothing. All indices are the "
    "operating\n"
    "system's.\n"
    "\n"
    "Memory:     local interleave node:N remote firsttouch (default: local; firsttouch for none)\n"
    "\n"
    "  --threads T           threads per rank; default: what fills the rank's object, 1 if that is a core\n"
    "  --ranks N             ranks on the node, with --print; default: as many as fit\n"
    "  --topology T          an hwloc XML file or synthetic description instead of this host, with --print\n"
    "  --machine NAME        what messages call the machine of --topology\n"
    "  --allowed LIST        use these CPUs only, such as 0-6,8\n"
    "  --witness DIR         preload libplumbwitness.so, which writes what the process did to DIR\n"
    "  --profile DIR         preload libplumbprofile.so, which writes what the rank spends in MPI to DIR\n"
    "  --output DIR          send the rank's standard output to DIR/HOST.PID.out, and give it no input\n"
    "  --export-topology F   write the topology as hwloc XML; - is standard output\n"
    "  --input FILE          with --output: what the first rank reads as its standard input\n"
    "  --barrier FILE        execute PROGRAM when as many ranks wait for this file as it says\n"
    "  --needs LIST          refuse a processor without these flags of /proc/cpuinfo, such as avx2,fma\n"
    "  --check               say what is wrong in the names of P and M, whatever the machine is\n"
    "  --devices             write GPUs, network cards and NVMe drives, and the ways between them, as JSON\n"
    "  --list                write all placements as JSON\n"
    "  --help                write this text\n"
    "Exit status: 2 for anything that cannot be satisfied, 126 or 127 if PROGRAM cannot be executed.\n";

static unsigned count_option(const char *name, const char *value) {
    unsigned number;
    if (!parse_number(value, &number) || number == 0)
        fail("%s: '%s' is not a whole number from 1 to %d", name, value, MAX_NUMBER);
    return number;
}

/* An option, and where its value is stored: a text, a number or a flag. */
struct known {
    const char *name, **text;
    unsigned *count;
    bool *flag;
};

enum { KNOWN = 18 };

static void list_known(struct options *options, struct known known[KNOWN]) {
    const struct known all[KNOWN] = {
        {"--placement", &options->placement, NULL, NULL},
        {"--memory", &options->memory, NULL, NULL},
        {"--topology", &options->topology, NULL, NULL},
        {"--machine", &options->machine, NULL, NULL},
        {"--allowed", &options->allowed, NULL, NULL},
        {"--witness", &options->witness, NULL, NULL},
        {"--output", &options->output, NULL, NULL},
        {"--input", &options->input, NULL, NULL},
        {"--barrier", &options->barrier, NULL, NULL},
        {"--needs", &options->needs, NULL, NULL},
        {"--threads", NULL, &options->threads, NULL},
        {"--profile", &options->profile, NULL, NULL},
        {"--ranks", NULL, &options->ranks, NULL},
        {"--export-topology", &options->export_file, NULL, NULL},
        {"--list", NULL, NULL, &options->list},
        {"--devices", NULL, NULL, &options->devices},
        {"--print", NULL, NULL, &options->print},
        {"--check", NULL, NULL, &options->check},
    };
    memcpy(known, all, sizeof all);
}

/* The option that `word` is, as "--name" or "--name=value"; NULL: none. */
static const struct known *find_known(const struct known known[KNOWN], const char *word) {
    for (int i = 0; i < KNOWN; i++) {
        size_t length = strlen(known[i].name);
        if (!strncmp(word, known[i].name, length) &&
            (!word[length] || (word[length] == '=' && !known[i].flag)))
            return &known[i];
    }
    return NULL;
}

/* Store an option; returns how many words that took, 0 if `word` is none. */
static int take_option(struct options *options, const char *word, const char *next) {
    struct known known[KNOWN];
    list_known(options, known);
    const struct known *option = find_known(known, word);
    if (!option)
        return 0;
    if (option->flag)
        return *option->flag = 1;
    const char *equals = word[strlen(option->name)] ? word + strlen(option->name) : NULL;
    const char *value = equals ? equals + 1 : next;
    if (!value || !*value || (!equals && !strcmp(value, "--")))
        fail("%s needs a value", option->name);
    if (option->text)
        *option->text = value;
    else
        *option->count = count_option(option->name, value);
    return equals ? 1 : 2;
}

static _Noreturn void show_help(void) {
    fputs(help, stdout);
    fputs("Placements: ", stdout);
    write_names(" ", stdout);
    putchar('\n');
    exit(EXIT_SUCCESS);
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
    if (options->input)
        fail("--print runs nothing: leave out --input");
    if (options->barrier)
        fail("--print runs nothing: leave out --barrier");
    if (options->needs)
        fail("--print runs nothing: leave out --needs");
}

static void check_run(const struct options *options) {
    const char *only_print = options->topology  ? "--topology"
                             : options->machine ? "--machine"
                             : options->ranks   ? "--ranks"
                                                : NULL;
    if (only_print)
        fail("%s goes with --print only: a real start uses this host and its launcher", only_print);
    if (!options->program)
        fail("no program to run: write -- PROGRAM ARG... at the end, or --print");
}

/* Option `name` starts nothing and plans nothing: no other option means anything beside it, but those that
 * `companions` names (NULL: none). */
static void check_alone(struct options *options, const char *name, const char *companions) {
    struct known known[KNOWN];
    list_known(options, known);
    const char *other = options->program ? "the program" : NULL;
    for (int i = 0; i < KNOWN && !other; i++) {
        bool given = known[i].text    ? *known[i].text != NULL
                     : known[i].count ? *known[i].count != 0
                                      : *known[i].flag;
        if (given && strcmp(known[i].name, name) && !(companions && strstr(companions, known[i].name)))
            other = known[i].name;
    }
    if (other && companions)
        fail("%s goes with %s only: leave out %s", name, companions, other);
    if (other)
        fail("%s goes alone: leave out %s", name, other);
}

static void check(struct options *options) {
    if (options->list)
        check_alone(options, "--list", NULL);
    else if (options->devices)
        check_alone(options, "--devices", "--topology");
    else if (options->export_file)
        check_alone(options, "--export-topology", "--topology");
    else if (!options->placement)
        fail("no --placement given (see plumb-bind --help)");
    else if (options->check)
        check_alone(options, "--check", "--placement and --memory");
    else if (options->print)
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
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h"))
            show_help();
        int taken = take_option(&options, words[i], i + 1 < count ? words[i + 1] : NULL);
        if (!taken && words[i][0] == '-')
            fail("unknown option '%s' (see plumb-bind --help)", words[i]);
        if (!taken)
            fail("unexpected word '%s': the program comes after --", words[i]);
        i += taken;
    }
    check(&options);
    return options;
}
