#include "cputable.h"

#include "fail.h"

#include <stdlib.h>

static int ancestor_id(hwloc_topology_t topology, hwloc_obj_t pu, hwloc_obj_type_t type, int otherwise) {
    hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(topology, type, pu);
    return found ? (int)found->logical_index : otherwise;
}

static bool better_home(hwloc_obj_t candidate, hwloc_obj_t best) {
    if (!best)
        return true;
    int size = hwloc_bitmap_weight(candidate->cpuset), best_size = hwloc_bitmap_weight(best->cpuset);
    if (size != best_size)
        return size < best_size;
    return candidate->os_index < best->os_index;
}

/* OS index of the innermost NUMA node around a CPU; of several with the same CPUs, the lowest. */
static int home_node(hwloc_topology_t topology, unsigned cpu) {
    hwloc_obj_t best = NULL, node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isset(node->cpuset, cpu) && better_home(node, best))
            best = node;
    return best ? (int)best->os_index : NO_OBJECT;
}

static struct cpu read_cpu(hwloc_topology_t topology, hwloc_obj_t pu) {
    struct cpu cpu = {.os = pu->os_index};
    /* Virtual machines may show no cores or packages: each CPU is then a core, the machine one package. */
    cpu.object[LEVEL_CORE] = ancestor_id(topology, pu, HWLOC_OBJ_CORE, (int)pu->logical_index);
    cpu.object[LEVEL_L2] = ancestor_id(topology, pu, HWLOC_OBJ_L2CACHE, NO_OBJECT);
    cpu.object[LEVEL_L3] = ancestor_id(topology, pu, HWLOC_OBJ_L3CACHE, NO_OBJECT);
    cpu.object[LEVEL_NUMA] = home_node(topology, pu->os_index);
    cpu.object[LEVEL_PACKAGE] = ancestor_id(topology, pu, HWLOC_OBJ_PACKAGE, 0);
    cpu.object[LEVEL_MACHINE] = 0;
    return cpu;
}

static struct cpu_list read_threads(const struct machine *machine) {
    size_t room = (size_t)hwloc_bitmap_weight(machine->allowed);
    struct cpu_list list = {.cpu = allocate(room, sizeof(struct cpu))};
    hwloc_obj_t pu = NULL;
    while ((pu = hwloc_get_next_obj_by_type(machine->topology, HWLOC_OBJ_PU, pu)))
        if (list.count < room && hwloc_bitmap_isset(machine->allowed, pu->os_index))
            list.cpu[list.count++] = read_cpu(machine->topology, pu);
    return list;
}

static void weigh(struct cpu_list *threads) {
    for (size_t i = 0; i < threads->count; i++)
        for (size_t j = 0; j < threads->count; j++)
            for (int level = 0; level < LEVELS; level++)
                if (threads->cpu[i].object[level] == threads->cpu[j].object[level])
                    threads->cpu[i].weight[level]++;
}

static struct cpu_list first_of_each_core(const struct cpu_list *threads) {
    struct cpu_list list = {.cpu = allocate(threads->count, sizeof(struct cpu))};
    for (size_t i = 0; i < threads->count; i++)
        if (i == 0 || threads->cpu[i].object[LEVEL_CORE] != threads->cpu[i - 1].object[LEVEL_CORE])
            list.cpu[list.count++] = threads->cpu[i];
    return list;
}

struct cpu_table read_cpu_table(const struct machine *machine) {
    struct cpu_table table = {.threads = read_threads(machine)};
    if (table.threads.count == 0)
        fail("%s: no CPU is allowed", machine->where);
    weigh(&table.threads);
    table.cores = first_of_each_core(&table.threads);
    return table;
}

void free_cpu_table(struct cpu_table *table) {
    free(table->threads.cpu);
    free(table->cores.cpu);
}

static struct object *object_with(struct object_list *objects, int id, size_t room) {
    for (size_t i = 0; i < objects->count; i++)
        if (objects->object[i].id == id)
            return &objects->object[i];
    struct object *added = &objects->object[objects->count++];
    *added = (struct object){.id = id, .os = allocate(room, sizeof(unsigned))};
    return added;
}

struct object_list objects_at(const struct cpu_list *cpus, enum level level) {
    struct object_list objects = {.object = allocate(cpus->count, sizeof(struct object))};
    for (size_t i = 0; i < cpus->count; i++) {
        if (cpus->cpu[i].object[level] == NO_OBJECT)
            continue;
        struct object *object = object_with(&objects, cpus->cpu[i].object[level], cpus->cpu[i].weight[level]);
        object->os[object->count++] = cpus->cpu[i].os;
    }
    return objects;
}

void free_objects(struct object_list *objects) {
    for (size_t i = 0; i < objects->count; i++)
        free(objects->object[i].os);
    free(objects->object);
}

const struct cpu *find_cpu(const struct cpu_list *cpus, unsigned os) {
    for (size_t i = 0; i < cpus->count; i++)
        if (cpus->cpu[i].os == os)
            return &cpus->cpu[i];
    return NULL;
}

const char *level_name(enum level level) {
    static const char *const names[LEVELS] = {"cores",   "L2 caches", "L3 caches", "NUMA nodes with CPUs",
                                              "sockets", "nodes"};
    return names[level];
}
