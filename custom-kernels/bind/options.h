/* The command line, read strictly. */
#ifndef PLUMB_OPTIONS_H
#define PLUMB_OPTIONS_H

#include <stdbool.h>

struct options {
    const char *placement;   /* --placement, required unless a topology is exported, --devices or --list */
    const char *memory;      /* --memory, NULL: the placement's default */
    const char *topology;    /* --topology, NULL: this host */
    const char *machine;     /* --machine, what messages call it; NULL: the topology */
    const char *allowed;     /* --allowed, NULL: every CPU of the topology */
    const char *witness;     /* --witness, NULL: none */
    const char *profile;     /* --profile, NULL: none */
    const char *output;      /* --output, NULL: the launcher's */
    const char *input;       /* --input, of the first rank; NULL: none */
    const char *barrier;     /* --barrier, NULL: begin at once */
    const char *needs;       /* --needs, NULL: no instructions */
    bool devices;            /* --devices: list the machine's devices only */
    const char *export_file; /* --export-topology, NULL: none; "-" is standard output */
    unsigned threads;        /* --threads, 0: what fills the rank's object */
    unsigned ranks;          /* --ranks, 0: as many as fit */
    bool print;
    bool check;     /* --check: read the names of placement and memory only */
    bool list;      /* --list: list the placements only */
    char **program; /* what stands after "--", NULL: nothing */
};

/* Read the command line. Exits with status 0 after --help, and with status 2 after a mistake. */
struct options read_options(int count, char **words);

#endif
