#include "memory_policy.h"

#include "fail.h"
#include "numbers.h"

#include <hwloc/distances.h>
#include <string.h>

struct memory parse_memory(const char *name) {
    static const struct memory known[] = {{"local", MEMORY_LOCAL, 0},
                                          {"interleave", MEMORY_INTERLEAVE, 0},
                                          {"remote", MEMORY_REMOTE, 0},
                                          {"firsttouch", MEMORY_FIRSTTOUCH, 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i];
    struct memory memory = {.name = name, .kind = MEMORY_NODE};
    if (strncmp(name, "node:", 5))
        fail("unknown memory policy '%s': known are local, interleave, node:N, remote, firsttouch", name);
    if (!parse_number(name + 5, &memory.node))
        fail("memory %s: '%s' is not a whole number", name, name + 5);
    return memory;
}

static hwloc_obj_t next_node(const struct machine *machine, hwloc_obj_t node) {
    return hwloc_get_next_obj_by_type(machine->topology, HWLOC_OBJ_NUMANODE, node);
}

/* Where no node reports its size (some virtual machines), all are taken to have memory. */
static bool has_memory(const struct machine *machine, hwloc_obj_t node) {
    if (node->attr->numanode.local_memory)
        return true;
    for (hwloc_obj_t other = NULL; (other = next_node(machine, other));)
        if (other->attr->numanode.local_memory)
            return false;
    return true;
}

/* The nodes that the rank's CPUs belong to. */
static void home_nodes(const struct memory *memory, const struct machine *machine,
                       const struct cpu_table *table, hwloc_const_bitmap_t cpus, hwloc_bitmap_t nodes) {
    hwloc_bitmap_zero(nodes);
    for (size_t i = 0; i < table->threads.count; i++) {
        const struct cpu *cpu = &table->threads.cpu[i];
        if (!hwloc_bitmap_isset(cpus, cpu->os))
            continue;
        if (cpu->object[LEVEL_NUMA] == NO_OBJECT)
            fail("memory %s: CPU %u has no usable NUMA node on %s: --memory firsttouch needs none",
                 memory->name, cpu->os, machine->where);
        hwloc_bitmap_set(nodes, (unsigned)cpu->object[LEVEL_NUMA]);
    }
}

static void local_nodes(const struct memory *memory, const struct machine *machine,
                        const struct cpu_table *table, hwloc_const_bitmap_t cpus, hwloc_bitmap_t nodes) {
    home_nodes(memory, machine, table, cpus, nodes);
    for (int os = hwloc_bitmap_first(nodes); os >= 0; os = hwloc_bitmap_next(nodes, os))
        if (!has_memory(machine, hwloc_get_numanode_obj_by_os_index(machine->topology, (unsigned)os)))
            fail("memory %s: NUMA node %d has no memory on %s: name another with node:N", memory->name, os,
                 machine->where);
}

static void all_nodes(const struct machine *machine, hwloc_bitmap_t nodes) {
    hwloc_bitmap_zero(nodes);
    for (hwloc_obj_t node = NULL; (node = next_node(machine, node));)
        if (has_memory(machine, node))
            hwloc_bitmap_set(nodes, node->os_index);
}

static void one_node(const struct memory *memory, const struct machine *machine, hwloc_bitmap_t nodes) {
    hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(machine->topology, memory->node);
    if (!node)
        fail("memory %s: there is no NUMA node %u on %s", memory->name, memory->node, machine->where);
    if (!has_memory(machine, node))
        fail("memory %s: NUMA node %u has no memory on %s", memory->name, memory->node, machine->where);
    hwloc_bitmap_only(nodes, memory->node);
}

/* Not by CPU sets: hwloc gives a node that is local to no CPU the CPU set of the whole machine. */
static bool is_far(const struct machine *machine, hwloc_obj_t node, hwloc_const_bitmap_t homes) {
    return has_memory(machine, node) && !hwloc_bitmap_isset(homes, node->os_index);
}

static hwloc_uint64_t distance_from(struct hwloc_distances_s *table, hwloc_const_bitmap_t homes,
                                    unsigned column) {
    hwloc_uint64_t sum = 0;
    for (unsigned row = 0; row < table->nbobjs; row++)
        if (hwloc_bitmap_isset(homes, table->objs[row]->os_index))
            sum += table->values[row * table->nbobjs + column];
    return sum;
}

/* OS index of the farthest node, -1 if there is no far one. */
static int farthest(const struct machine *machine, struct hwloc_distances_s *table,
                    hwloc_const_bitmap_t homes) {
    int best = -1;
    hwloc_uint64_t best_distance = 0;
    for (unsigned column = 0; column < table->nbobjs; column++) {
        hwloc_obj_t node = table->objs[column];
        hwloc_uint64_t distance = distance_from(table, homes, column);
        bool nearer_name = distance == best_distance && (int)node->os_index < best;
        if (is_far(machine, node, homes) && (best < 0 || distance > best_distance || nearer_name)) {
            best = (int)node->os_index;
            best_distance = distance;
        }
    }
    return best;
}

static void remote_node(const struct memory *memory, const struct machine *machine,
                        const struct cpu_table *table, hwloc_const_bitmap_t cpus, hwloc_bitmap_t nodes) {
    int available = hwloc_get_nbobjs_by_type(machine->topology, HWLOC_OBJ_NUMANODE);
    if (available < 2)
        fail("memory %s: only one NUMA node on %s", memory->name, machine->where);
    struct hwloc_distances_s *distances = NULL;
    unsigned count = 1;
    if (hwloc_distances_get_by_type(machine->topology, HWLOC_OBJ_NUMANODE, &count, &distances,
                                    HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
        count == 0)
        fail("memory %s: no table of NUMA distances on %s: name the node with node:N", memory->name,
             machine->where);
    home_nodes(memory, machine, table, cpus, nodes);
    int node = farthest(machine, distances, nodes);
    hwloc_distances_release(machine->topology, distances);
    if (node < 0)
        fail("memory %s: the rank's CPUs are local to every one of the %d NUMA nodes with memory on %s",
             memory->name, available, machine->where);
    hwloc_bitmap_only(nodes, (unsigned)node);
}

enum policy place_memory(const struct memory *memory, const struct machine *machine,
                         const struct cpu_table *table, hwloc_const_bitmap_t cpus, hwloc_bitmap_t nodes) {
    hwloc_bitmap_zero(nodes);
    switch (memory->kind) {
    case MEMORY_LOCAL:
        local_nodes(memory, machine, table, cpus, nodes);
        return POLICY_BIND;
    case MEMORY_INTERLEAVE:
        all_nodes(machine, nodes);
        return POLICY_INTERLEAVE;
    case MEMORY_NODE:
        one_node(memory, machine, nodes);
        return POLICY_BIND;
    case MEMORY_REMOTE:
        remote_node(memory, machine, table, cpus, nodes);
        return POLICY_BIND;
    case MEMORY_FIRSTTOUCH:
        return POLICY_NONE;
    }
    fail("memory %s: not implemented", memory->name);
}
