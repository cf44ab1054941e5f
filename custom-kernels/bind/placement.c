#include "placement.h"

#include "fail.h"
#include "layout.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

static const struct placement known[] = {
    {"none", PLACE_NONE, LEVEL_MACHINE, 0, 0},
    {"compact", PLACE_COMPACT, LEVEL_CORE, 0, 0},
    {"scatter", PLACE_SCATTER, LEVEL_CORE, 0, 0},
    {"core", PLACE_CORE, LEVEL_CORE, 0, 0},
    {"l3", PLACE_OBJECT, LEVEL_L3, 0, 0},
    {"numa", PLACE_OBJECT, LEVEL_NUMA, 0, 0},
    {"socket", PLACE_OBJECT, LEVEL_PACKAGE, 0, 0},
    {"node", PLACE_OBJECT, LEVEL_MACHINE, 0, 0},
    {"smt", PLACE_SMT, LEVEL_CORE, 0, 0},
    {"roundrobin", PLACE_COMPACT, LEVEL_CORE, 0, 0},
    {"pair:smt", PLACE_PAIR_CLASS, LEVEL_CORE, 0, 0},
    {"pair:l3", PLACE_PAIR_CLASS, LEVEL_L3, 0, 0},
    {"pair:numa", PLACE_PAIR_CLASS, LEVEL_NUMA, 0, 0},
    {"pair:socket", PLACE_PAIR_CLASS, LEVEL_PACKAGE, 0, 0},
    {"pair:xsocket", PLACE_PAIR_CLASS, LEVEL_MACHINE, 0, 0},
    {"pair:node", PLACE_PAIR_NODE, LEVEL_MACHINE, 0, 0},
};

/* Placements that a number follows. */
static const struct placement numbered[] = {
    {"numa:", PLACE_ONE_OBJECT, LEVEL_NUMA, 0, 0},
    {"socket:", PLACE_ONE_OBJECT, LEVEL_PACKAGE, 0, 0},
    {"ways:", PLACE_WAYS, LEVEL_PACKAGE, 0, 0},
};

enum { KNOWN = sizeof known / sizeof *known, NUMBERED = sizeof numbered / sizeof *numbered, LONGEST = 32 };

/* How many letters must be changed, added or left out to turn `a` into `b` (Levenshtein). */
static size_t distance(const char *a, const char *b) {
    size_t row[LONGEST + 1], width = strlen(b);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[width];
}

static const char *closest(const char *name) {
    const char *best = NULL;
    size_t best_distance = 3; /* farther than two letters is not a slip of the finger */
    for (size_t i = 0; i < KNOWN && strlen(name) < LONGEST; i++) {
        size_t d = distance(name, known[i].name);
        if (d < best_distance) {
            best = known[i].name;
            best_distance = d;
        }
    }
    return best;
}

static _Noreturn void unknown(const char *name) {
    const char *near = closest(name);
    fail("unknown placement '%s'%s%s%s: known are none, compact, scatter, core, l3, numa, socket, node, smt, "
         "roundrobin, numa:N, socket:N, ways:N, pair:smt, pair:l3, pair:numa, pair:socket, pair:xsocket, "
         "pair:node, "
         "pair:I,J",
         name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static bool parse_numbered(const char *name, struct placement *placement) {
    for (size_t i = 0; i < NUMBERED; i++) {
        size_t length = strlen(numbered[i].name);
        if (strncmp(name, numbered[i].name, length))
            continue;
        *placement = numbered[i];
        if (!parse_number(name + length, &placement->first))
            fail("placement %s: '%s' is not a whole number", name, name + length);
        if (placement->kind == PLACE_WAYS && placement->first == 0)
            fail("placement %s: the number of ranks must be at least 1", name);
        return true;
    }
    return false;
}

static bool parse_pair_of_cpus(const char *name, struct placement *placement) {
    if (strncmp(name, "pair:", 5) || name[5] < '0' || name[5] > '9')
        return false;
    if (!parse_two_numbers(name + 5, &placement->first, &placement->second))
        fail("placement %s: '%s' is not two CPU numbers such as 0,4", name, name + 5);
    if (placement->first == placement->second)
        fail("placement %s: the two CPUs must differ", name);
    placement->kind = PLACE_PAIR_CPUS;
    placement->level = LEVEL_CORE;
    return true;
}

struct placement parse_placement(const char *name) {
    struct placement placement = {.name = name};
    for (size_t i = 0; i < KNOWN; i++)
        if (!strcmp(name, known[i].name))
            return known[i];
    if (!parse_numbered(name, &placement) && !parse_pair_of_cpus(name, &placement))
        unknown(name);
    placement.name = name;
    return placement;
}

/* Ranks on consecutive groups of T CPUs of `list`. */
static struct layout consecutive(const struct request *request, const struct cpu_list *list, unsigned threads,
                                 const char *things) {
    size_t groups = list->count / threads;
    if (groups == 0 || request->ranks > groups)
        cannot(request, "%u rank%s of %u thread%s asked, %zu %s", request->ranks ? request->ranks : 1,
               request->ranks > 1 ? "s" : "", threads, threads == 1 ? "" : "s", list->count, things);
    struct layout layout = new_layout(request->ranks ? request->ranks : (unsigned)groups, threads);
    for (size_t i = 0; i < (size_t)layout.ranks * threads; i++)
        layout.cpu[i] = list->cpu[i].os;
    return layout;
}

static size_t smallest(const struct object_list *objects, unsigned used) {
    size_t least = objects->object[0].count;
    for (unsigned i = 1; i < used; i++)
        if (objects->object[i].count < least)
            least = objects->object[i].count;
    return least;
}

/* One rank on each of the first objects. */
static struct layout one_each(const struct request *request, struct object_list *objects,
                              const char *things) {
    if (objects->count == 0)
        cannot(request, "no %s", things);
    unsigned ranks = ranks_within(request, objects->count, things);
    unsigned threads = threads_within(request, smallest(objects, ranks), things);
    struct layout layout = new_layout(ranks, threads);
    for (unsigned rank = 0; rank < ranks; rank++)
        place_rank(&layout, rank, objects->object[rank].os);
    free_objects(objects);
    return layout;
}

static struct layout lay_out_objects(const struct request *request) {
    enum level level = request->placement->level;
    struct object_list objects = objects_at(&request->table->cores, level);
    return one_each(request, &objects, level_name(level));
}

static hwloc_obj_t find_node(hwloc_topology_t topology, unsigned os) {
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        if (node->os_index == os)
            return node;
    return NULL;
}

/* Is the CPU on the object that numa:N or socket:N names? A NUMA node that shares its CPUs with the CPU's own
 * node (HBM beside DRAM) is as good a name for them. */
static bool on_named_object(const struct request *request, const struct cpu *cpu, hwloc_obj_t named) {
    if (request->placement->level != LEVEL_NUMA)
        return cpu->object[LEVEL_PACKAGE] == (int)request->placement->first;
    if (cpu->object[LEVEL_NUMA] == NO_OBJECT)
        return false;
    hwloc_obj_t home = find_node(request->machine->topology, (unsigned)cpu->object[LEVEL_NUMA]);
    return hwloc_bitmap_isequal(home->cpuset, named->cpuset);
}

static struct layout lay_out_one_object(const struct request *request) {
    const struct placement *placement = request->placement;
    const struct cpu_list *cores = &request->table->cores;
    const char *kind = placement->level == LEVEL_NUMA ? "NUMA node" : "socket";
    hwloc_obj_t named = NULL;
    if (placement->level == LEVEL_NUMA && !(named = find_node(request->machine->topology, placement->first)))
        cannot(request, "there is no NUMA node %u", placement->first);
    if (request->ranks > 1)
        cannot(request, "%u ranks asked, this placement has one", request->ranks);
    struct layout all = new_layout(1, (unsigned)cores->count);
    unsigned count = 0;
    for (size_t i = 0; i < cores->count; i++)
        if (on_named_object(request, &cores->cpu[i], named))
            all.cpu[count++] = cores->cpu[i].os;
    if (count == 0)
        cannot(request, "no core of %s %u may be used", kind, placement->first);
    if (request->threads > count)
        cannot(request, "%u threads asked, %u cores of %s %u", request->threads, count, kind,
               placement->first);
    all.threads = request->threads ? request->threads : count;
    return all;
}

static struct layout lay_out_smt(const struct request *request) {
    if (request->threads)
        return consecutive(request, &request->table->threads, request->threads, "hardware threads");
    struct object_list cores = objects_at(&request->table->threads, LEVEL_CORE);
    return one_each(request, &cores, "cores");
}

/* The control has as many ranks as compact would have. */
static struct layout lay_out_none(const struct request *request) {
    unsigned threads = request->threads ? request->threads : 1;
    unsigned room = request->ranks_known ? (unsigned)request->table->cores.count / threads : 1;
    unsigned ranks = request->ranks ? request->ranks : room ? room : 1;
    return (struct layout){.ranks = ranks, .threads = threads};
}

struct layout lay_out(const struct request *request) {
    switch (request->placement->kind) {
    case PLACE_NONE:
        return lay_out_none(request);
    case PLACE_CORE:
        single_thread(request);
        return consecutive(request, &request->table->cores, 1, "cores");
    case PLACE_COMPACT:
        return consecutive(request, &request->table->cores, request->threads ? request->threads : 1, "cores");
    case PLACE_SCATTER:
        return lay_out_scatter(request);
    case PLACE_OBJECT:
        return lay_out_objects(request);
    case PLACE_ONE_OBJECT:
        return lay_out_one_object(request);
    case PLACE_SMT:
        return lay_out_smt(request);
    case PLACE_WAYS:
        return lay_out_ways(request);
    case PLACE_PAIR_CLASS:
        return lay_out_pair_class(request);
    case PLACE_PAIR_NODE:
        return lay_out_pair_node(request);
    case PLACE_PAIR_CPUS:
        return lay_out_pair_cpus(request);
    }
    fail("placement %s: not implemented", request->placement->name);
}
