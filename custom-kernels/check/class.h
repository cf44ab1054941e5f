/* The class file: what `plumb calibrate --nodes` found on nodes of one kind. A line each, by its first word:
 *
 *   plumb-class 1            the form
 *   name NAME                of the class; `made TIME`, `rate X`, `tolerance X` are shown
 *   cpu CPU NUMA             a core that is measured, by a hardware thread of it, and its NUMA node
 *   pair CPU CPU             neighbours
 *   jobs HEALTH_SCRIPT SCHEDULER jobs
 *                            who is asked whether a job is on the node: a class names no other program
 *   member HOST              a node that the class was made of
 *   fact NAME VALUE…         what has to be equal
 *   idle MIB                 the memory that idle nodes have, which plumb check --held compares
 *   room PATH BYTES          what has to be free on the file system of PATH
 *   budget SECONDS ROUNDS    a length that can be asked for
 *   limit SECONDS FIGURE MEMBER OTHER DOUBT FOUND
 *                            the median of the rounds is slow beyond MEMBER on a node of the class, beyond
 * OTHER on any other, in doubt beyond DOUBT; `none`: the class cannot promise it. FOUND: the slowdown, a
 * fraction, that is found nine times in ten end                      the file is whole
 *
 * Without facts and limits it is the plan by which a class is made. */
#ifndef PLUMB_CHECK_CLASS_H
#define PLUMB_CHECK_CLASS_H

#include "figures.h"

#include <stdbool.h>
#include <stddef.h>

enum { MOST_BUDGETS = 8 };

/* As playbooks/roles/plumb_health installs it. */
#define HEALTH_SCRIPT "/usr/local/lib/plumbline/health.sh"

struct core {
    int cpu, numa;
};

struct pair {
    int cpu[2];
};

struct named {
    const char *name, *value;
};

struct room {
    const char *path;
    double bytes;
};

/* NAN: none. */
struct limit {
    bool given;
    double member, other, doubt, found;
};

struct budget {
    double seconds;
    int rounds;
    struct limit limit[FIGURES];
};

struct class {
    const char *name, *made;
    double rate, tolerance;
    struct core *cores;
    struct pair *pairs;
    const char **members;
    struct named *facts;
    struct room *rooms;
    size_t core_count, pair_count, member_count, fact_count, room_count;
    const char *scheduler; /* NULL: nobody is asked for jobs */
    struct budget budgets[MOST_BUDGETS];
    int budget_count;
};

/* Read a class. Ends the program with one line for a file that is none, or is not whole. */
void class_read(struct class *class, const char *path);

/* The budget of this many seconds; ends the program with one line that names those that there are. */
const struct budget *class_budget(const struct class *class, double seconds);

/* Whether the class was made of measurements of this node, among others. */
bool class_has(const struct class *class, const char *node);

#endif
