/* The allowed CPUs as a table: for each one, the core, caches, NUMA node and package that it belongs to. */
#ifndef PLUMB_CPUTABLE_H
#define PLUMB_CPUTABLE_H

#include "machine.h"

/* From small to large. NUMA nodes that share one CPU set (DRAM and HBM of a package) count as one, named
 * after the one with the lowest OS index; where nodes are nested a CPU belongs to the innermost. */
enum level { LEVEL_CORE, LEVEL_L2, LEVEL_L3, LEVEL_NUMA, LEVEL_PACKAGE, LEVEL_MACHINE, LEVELS };

enum { NO_OBJECT = -1 };

struct cpu {
    unsigned os;             /* OS index */
    int object[LEVELS];      /* id of the object of each level, NO_OBJECT if there is none */
    unsigned weight[LEVELS]; /* allowed CPUs of that object */
};

struct cpu_list {
    struct cpu *cpu;
    size_t count;
};

struct cpu_table {
    struct cpu_list threads; /* every allowed hardware thread, in hwloc's logical order: siblings together */
    struct cpu_list cores;   /* the first allowed hardware thread of every core, in the same order */
};

/* Build the table. NUMA ids are OS indices, all other ids logical indices. Fails if no CPU is allowed. Free
 * with free_cpu_table. */
struct cpu_table read_cpu_table(const struct machine *machine);

void free_cpu_table(struct cpu_table *table);

/* One object of some level and its CPUs, in table order. */
struct object {
    int id;
    size_t count;
    unsigned *os;
};

struct object_list {
    struct object *object;
    size_t count;
};

/* The objects of `level` that hold CPUs of `cpus`, in order of their first CPU. Free with free_objects. */
struct object_list objects_at(const struct cpu_list *cpus, enum level level);

void free_objects(struct object_list *objects);

/* The CPU with OS index `os`, NULL if it is not in the list. */
const struct cpu *find_cpu(const struct cpu_list *cpus, unsigned os);

/* "L3 caches", "NUMA nodes with CPUs", ... for messages. */
const char *level_name(enum level level);

#endif
