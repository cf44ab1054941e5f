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

static void all_nodes(const struct machine *machine, hwloc_bitmap_t nodes) {
    hwloc_bitmap_zero(nodes);
    for (hwloc_obj_t node = NULL; (node = next_node(machine, node));)
        if (has_memory(machine, node))
            hwloc_bitmap_set(nodes, node->os_index);
}

static hwloc_uint64_t distance_from(struct hwloc_distances_s *table, hwloc_const_bitmap_t homes,
                                    unsigned column) {
    hwloc_uint64_t sum = 0;
    for (unsigned row = 0; row < table->nbobjs; row++)
        if (hwloc_bitmap_isset(homes, table->objs[row]->os_index))
            sum += table->values[row * table->nbobjs + column];
    return sum;
}

/* NULL where the firmware gives no table. */
static struct hwloc_distances_s *latencies(const struct machine *machine) {
    struct hwloc_distances_s *table = NULL;
    unsigned count = 1;
    bool known = !hwloc_distances_get_by_type(machine->topology, HWLOC_OBJ_NUMANODE, &count, &table,
                                              HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0);
    return known && count ? table : NULL;
}

/* Add the nodes with memory that are nearest to node `home`; all of them where no table says. */
static void add_nearest(const struct machine *machine, int home, hwloc_bitmap_t nodes) {
    struct hwloc_distances_s *table = latencies(machine);
    hwloc_bitmap_t from = hwloc_bitmap_alloc(), with_memory = hwloc_bitmap_alloc();
    all_nodes(machine, with_memory);
    if (home != NO_OBJECT)
        hwloc_bitmap_set(from, (unsigned)home);
    hwloc_uint64_t least = UINT64_MAX;
    for (unsigned column = 0; table && column < table->nbobjs; column++)
        if (hwloc_bitmap_isset(with_memory, table->objs[column]->os_index) &&
            distance_from(table, from, column) < least)
            least = distance_from(table, from, column);
    for (unsigned column = 0; table && column < table->nbobjs; column++)
        if (distance_from(table, from, column) > least)
            hwloc_bitmap_clr(with_memory, table->objs[column]->os_index);
    hwloc_bitmap_or(nodes, nodes, with_memory);
    if (table)
        hwloc_distances_release(machine->topology, table);
    hwloc_bitmap_free(from);
    hwloc_bitmap_free(with_memory);
}

/* Whether all memory of the machine may be used; a control group may leave CPUs without that of their node.
 */
static bool all_allowed(const struct machine *machine) {
    return hwloc_bitmap_isequal(hwloc_topology_get_allowed_nodeset(machine->topology),
                                hwloc_topology_get_complete_nodeset(machine->topology));
}

/* The nodes that the rank's CPUs belong to, and into `local` those from which their memory comes: where a
 * node has none (empty channels), or is offline, the kernel takes that of the nearest. */
static void home_nodes(const struct memory *memory, const struct machine *machine,
                       const struct cpu_table *table, hwloc_const_bitmap_t cpus, hwloc_bitmap_t homes,
                       hwloc_bitmap_t local) {
    hwloc_bitmap_zero(homes);
    hwloc_bitmap_zero(local);
    for (size_t i = 0; i < table->threads.count; i++) {
        const struct cpu *cpu = &table->threads.cpu[i];
        if (!hwloc_bitmap_isset(cpus, cpu->os))
            continue;
        int home = cpu->object[LEVEL_NUMA];
        if (home == NO_OBJECT && !all_allowed(machine))
            fail("memory %s: CPU %u has no usable NUMA node on %s: --memory firsttouch needs none",
                 memory->name, cpu->os, machine->where);
        if (home != NO_OBJECT)
            hwloc_bitmap_set(homes, (unsigned)home);
        if (home != NO_OBJECT &&
            has_memory(machine, hwloc_get_numanode_obj_by_os_index(machine->topology, (unsigned)home)))
            hwloc_bitmap_set(local, (unsigned)home);
        else
            add_nearest(machine, home, local);
    }
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
static bool is_far(const struct machine *machine, hwloc_obj_t node, hwloc_const_bitmap_t local) {
    return has_memory(machine, node) && !hwloc_bitmap_isset(local, node->os_index);
}

/* OS index of the farthest node, -1 if there is no far one. */
static int farthest(const struct machine *machine, struct hwloc_distances_s *table,
                    hwloc_const_bitmap_t homes, hwloc_const_bitmap_t local) {
    int best = -1;
    hwloc_uint64_t best_distance = 0;
    for (unsigned column = 0; column < table->nbobjs; column++) {
        hwloc_obj_t node = table->objs[column];
        hwloc_uint64_t distance = distance_from(table, homes, column);
        bool nearer_name = distance == best_distance && (int)node->os_index < best;
        if (is_far(machine, node, local) && (best < 0 || distance > best_distance || nearer_name)) {
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
    struct hwloc_distances_s *distances = latencies(machine);
    if (!distances)
        fail("memory %s: no table of NUMA distances on %s: name the node with node:N", memory->name,
             machine->where);
    hwloc_bitmap_t homes = hwloc_bitmap_alloc();
    home_nodes(memory, machine, table, cpus, homes, nodes);
    int node = farthest(machine, distances, homes, nodes);
    hwloc_bitmap_free(homes);
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
    case MEMORY_LOCAL: {
        hwloc_bitmap_t homes = hwloc_bitmap_alloc();
        home_nodes(memory, machine, table, cpus, homes, nodes);
        hwloc_bitmap_free(homes);
        return POLICY_BIND;
    }
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
