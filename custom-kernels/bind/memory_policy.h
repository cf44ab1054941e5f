/* Memory policies: from a name and a rank's CPUs to NUMA nodes. */
#ifndef PLUMB_MEMORY_POLICY_H
#define PLUMB_MEMORY_POLICY_H

#include "cputable.h"

enum memory_kind { MEMORY_LOCAL, MEMORY_INTERLEAVE, MEMORY_NODE, MEMORY_REMOTE, MEMORY_FIRSTTOUCH };

struct memory {
    const char *name; /* as given */
    enum memory_kind kind;
    unsigned node; /* OS index, for node:N */
};

enum policy { POLICY_NONE, POLICY_BIND, POLICY_INTERLEAVE };

/* Read a memory policy. Fails on an unknown one with the list of all. */
struct memory parse_memory(const char *name);

/* Set `nodes` to the OS indices of the NUMA nodes for a rank on `cpus` and return the policy; for POLICY_NONE
 * the set is empty. `local` of CPUs whose node has no memory, or that have none, are the nearest nodes with
 * memory; without a table of distances all of them; but where a control group took the node away, it fails.
 * `remote` is, of the nodes that `local` would not use, the one with the largest sum of distances from the
 * rank's own nodes, the lowest OS index among equals. Fails if a node that is named is missing or has no
 * memory and, for `remote`, if the machine has no table of distances. */
enum policy place_memory(const struct memory *memory, const struct machine *machine,
                         const struct cpu_table *table, hwloc_const_bitmap_t cpus, hwloc_bitmap_t nodes);

#endif
