/* The machine: an hwloc topology, what it is called in messages, and the CPUs that may be used. */
#ifndef PLUMB_MACHINE_H
#define PLUMB_MACHINE_H

#include <hwloc.h>
#include <stdbool.h>

struct machine {
    hwloc_topology_t topology;
    char *name;             /* what messages call it: the name given, else "this host" or the description */
    char *where;            /* `name`, with the CPU list if that was narrowed */
    hwloc_bitmap_t allowed; /* OS indices of the CPUs that may be used */
    bool is_this_host;
};

/* Parts that are loaded only on request, because loading them takes time at every start. */
enum machine_parts { WITH_DISTANCES = 1, WITH_DEVICES = 2 };

/* Load this host (`description` NULL), an hwloc XML file or a synthetic description, with `parts`. Other
 * objects that no placement needs are left out. `name` is what messages call it (NULL: the description).
 * `allowed` narrows to a CPU list (NULL: no narrowing); on this host the affinity on entry narrows too. Fails
 * if the topology cannot be loaded, or if the list has a CPU that is not usable. Free with free_machine. */
struct machine load_machine(const char *description, const char *name, const char *allowed, unsigned parts);

/* Load a machine as load_machine does, but without narrowing: with every CPU that the control group allows,
 * whatever this process is bound to. */
struct machine load_whole_machine(const char *description, unsigned parts);

void free_machine(struct machine *machine);

/* Write the whole topology, I/O devices included, as hwloc XML to `file` ("-": standard output). Fails if it
 * cannot be loaded or written. */
void export_topology(const char *description, const char *file);

#endif
