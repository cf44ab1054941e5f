#include "placement.h"

#include "fail.h"
#include "layout.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

/* Every placement, pairs from near to far: the one place that knows their names. */
static const struct placement known[] = {
    {.name = "none", .kind = PLACE_NONE, .level = LEVEL_MACHINE},
    {.name = "compact", .kind = PLACE_COMPACT, .level = LEVEL_CORE},
    {.name = "scatter", .kind = PLACE_SCATTER, .level = LEVEL_CORE},
    {.name = "spread", .kind = PLACE_SPREAD, .level = LEVEL_CORE},
    {.name = "core", .kind = PLACE_CORE, .level = LEVEL_CORE},
    {.name = "l3", .kind = PLACE_OBJECT, .level = LEVEL_L3},
    {.name = "numa", .kind = PLACE_OBJECT, .level = LEVEL_NUMA},
    {.name = "socket", .kind = PLACE_OBJECT, .level = LEVEL_PACKAGE},
    {.name = "node", .kind = PLACE_OBJECT, .level = LEVEL_MACHINE},
    {.name = "smt", .kind = PLACE_SMT, .level = LEVEL_CORE},
    {.name = "roundrobin", .kind = PLACE_ROUND_ROBIN, .level = LEVEL_CORE},
    {.name = "gpu", .kind = PLACE_DEVICE, .level = LEVEL_CORE, .device = DEVICE_GPU},
    {.name = "gpu:far", .kind = PLACE_DEVICE_FAR, .level = LEVEL_CORE, .device = DEVICE_GPU},
    {.name = "gpu:far:",
     .argument = "N",
     .kind = PLACE_DEVICE_FAR,
     .level = LEVEL_CORE,
     .device = DEVICE_GPU},
    {.name = "gpu:", .argument = "N", .kind = PLACE_DEVICE, .level = LEVEL_CORE, .device = DEVICE_GPU},
    {.name = "nic", .kind = PLACE_DEVICE, .level = LEVEL_CORE, .device = DEVICE_NIC},
    {.name = "numa:", .argument = "N", .kind = PLACE_ONE_OBJECT, .level = LEVEL_NUMA},
    {.name = "socket:", .argument = "N", .kind = PLACE_ONE_OBJECT, .level = LEVEL_PACKAGE},
    {.name = "ways:", .argument = "N", .kind = PLACE_WAYS, .level = LEVEL_PACKAGE},
    {.name = "pair:smt", .kind = PLACE_PAIR_CLASS, .level = LEVEL_CORE},
    {.name = "pair:l2", .kind = PLACE_PAIR_CLASS, .level = LEVEL_L2},
    {.name = "pair:l3", .kind = PLACE_PAIR_CLASS, .level = LEVEL_L3},
    {.name = "pair:numa", .kind = PLACE_PAIR_CLASS, .level = LEVEL_NUMA},
    {.name = "pair:socket", .kind = PLACE_PAIR_CLASS, .level = LEVEL_PACKAGE},
    {.name = "pair:xsocket", .kind = PLACE_PAIR_CLASS, .level = LEVEL_MACHINE},
    {.name = "pair:node", .kind = PLACE_PAIR_NODE, .level = LEVEL_MACHINE},
    {.name = "pair:gpu:",
     .argument = "WAY|I,J",
     .kind = PLACE_DEVICE_PAIR,
     .level = LEVEL_CORE,
     .device = DEVICE_GPU},
    {.name = "pair:nic:",
     .argument = "WAY|I,J",
     .kind = PLACE_DEVICE_PAIR,
     .level = LEVEL_CORE,
     .device = DEVICE_NIC},
    {.name = "pair:", .argument = "I,J", .kind = PLACE_PAIR_CPUS, .level = LEVEL_CORE},
};

enum { KNOWN = sizeof known / sizeof *known, LONGEST = 32 };

bool is_bound(const struct placement *placement) {
    return placement->kind != PLACE_NONE;
}

static bool is_pair(const struct placement *placement) {
    return placement->kind == PLACE_PAIR_CLASS || placement->kind == PLACE_PAIR_NODE ||
           placement->kind == PLACE_PAIR_CPUS || placement->kind == PLACE_DEVICE_PAIR;
}

unsigned nodes_needed(const struct placement *placement) {
    return placement->kind == PLACE_PAIR_NODE ? 2 : 1;
}

const char *map_of(const struct placement *placement) {
    return placement->kind == PLACE_ROUND_ROBIN ? "cyclic" : "block";
}

const char *default_memory(const struct placement *placement) {
    return is_bound(placement) ? "local" : "firsttouch";
}

unsigned parts_needed(const struct placement *placement) {
    bool devices = placement->kind == PLACE_DEVICE || placement->kind == PLACE_DEVICE_FAR ||
                   placement->kind == PLACE_DEVICE_PAIR;
    return devices ? WITH_DEVICES : 0;
}

void write_names(const char *separator, FILE *file) {
    for (const struct placement *it = known; it < known + KNOWN; it++)
        fprintf(file, "%s%s%s", it == known ? "" : separator, it->name, it->argument ? it->argument : "");
}

void write_list(struct json *out) {
    json_open(out, NULL, '{');
    json_open(out, "placements", '[');
    for (const struct placement *it = known; it < known + KNOWN; it++) {
        json_newline(out);
        json_open(out, NULL, '{');
        json_text(out, "name", it->name);
        json_text(out, "argument", it->argument ? it->argument : "");
        json_bool(out, "pair", is_pair(it));
        json_bool(out, "bound", is_bound(it));
        json_text(out, "memory", default_memory(it));
        json_int(out, "nodes", nodes_needed(it));
        json_text(out, "map", map_of(it));
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}

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
    size_t best_distance = 3; /* more than two letters away is another word, not a typing error */
    for (size_t i = 0; i < KNOWN && strlen(name) < LONGEST; i++) {
        if (known[i].argument)
            continue;
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
    char *names = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&names, &length);
    if (!stream)
        fail("out of memory");
    write_names(", ", stream);
    fclose(stream);
    fail("unknown placement '%s'%s%s%s: known are %s", name, near ? " (did you mean '" : "", near ? near : "",
         near ? "'?)" : "", names);
}

static enum way parse_way(const char *name, const char *word) {
    static const char *const words[WAYS] = {"self", "pix", "pxb", "phb", "node", "sys"};
    for (int way = 0; way < WAYS; way++)
        if (!strcmp(word, words[way]))
            return (enum way)way;
    fail("placement %s: '%s' is none of self, pix, pxb, phb, node, sys", name, word);
}

/* Read the argument of `placement`, whose `name` is the whole word already, for messages. */
static void parse_argument(struct placement *placement, const char *argument) {
    const char *name = placement->name;
    if (placement->kind == PLACE_PAIR_CPUS) {
        if (!parse_two_numbers(argument, &placement->first, &placement->second))
            fail("placement %s: '%s' is not two CPU numbers such as 0,4", name, argument);
        if (placement->first == placement->second)
            fail("placement %s: the two CPUs must differ", name);
        return;
    }
    if (placement->kind == PLACE_DEVICE_PAIR) {
        placement->way = WAYS;
        if (!parse_two_numbers(argument, &placement->first, &placement->second))
            placement->way = parse_way(name, argument);
        return;
    }
    if (!parse_number(argument, &placement->first))
        fail("placement %s: '%s' is not a whole number", name, argument);
    if (placement->kind == PLACE_WAYS && placement->first == 0)
        fail("placement %s: the number of ranks must be at least 1", name);
}

/* Other names begin with "pair:" and "gpu:" too: these take numbers only if a digit follows. */
static bool takes_argument(const struct placement *placement, const char *name) {
    size_t length = strlen(placement->name);
    return !strncmp(name, placement->name, length) &&
           ((placement->kind != PLACE_PAIR_CPUS && placement->kind != PLACE_DEVICE) ||
            (name[length] >= '0' && name[length] <= '9'));
}

struct placement parse_placement(const char *name) {
    for (size_t i = 0; i < KNOWN; i++) {
        struct placement placement = known[i];
        if (!placement.argument && !strcmp(name, placement.name))
            return placement;
        if (placement.argument && takes_argument(&placement, name)) {
            placement.name = name;
            parse_argument(&placement, name + strlen(known[i].name));
            return placement;
        }
    }
    unknown(name);
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

/* Is the CPU on the object that numa:N or socket:N names? A NUMA node that shares its CPUs with the CPU's own
 * node (HBM beside DRAM) is as good a name for them. */
static bool on_named_object(const struct request *request, const struct cpu *cpu, hwloc_obj_t named) {
    if (request->placement->level != LEVEL_NUMA)
        return cpu->object[LEVEL_PACKAGE] == (int)request->placement->first;
    if (cpu->object[LEVEL_NUMA] == NO_OBJECT)
        return false;
    hwloc_obj_t home =
        hwloc_get_numanode_obj_by_os_index(request->machine->topology, (unsigned)cpu->object[LEVEL_NUMA]);
    return hwloc_bitmap_isequal(home->cpuset, named->cpuset);
}

static struct layout lay_out_one_object(const struct request *request) {
    const struct placement *placement = request->placement;
    const struct cpu_list *cores = &request->table->cores;
    const char *kind = placement->level == LEVEL_NUMA ? "NUMA node" : "socket";
    hwloc_obj_t named = NULL;
    if (placement->level == LEVEL_NUMA &&
        !(named = hwloc_get_numanode_obj_by_os_index(request->machine->topology, placement->first)))
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

/* The placement none has as many ranks as compact would have. */
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
    case PLACE_ROUND_ROBIN:
        return consecutive(request, &request->table->cores, request->threads ? request->threads : 1, "cores");
    case PLACE_SCATTER:
        return lay_out_scatter(request);
    case PLACE_SPREAD:
        return lay_out_spread(request);
    case PLACE_OBJECT:
        return lay_out_objects(request);
    case PLACE_ONE_OBJECT:
        return lay_out_one_object(request);
    case PLACE_SMT:
        return lay_out_smt(request);
    case PLACE_DEVICE:
    case PLACE_DEVICE_FAR:
        return lay_out_devices(request);
    case PLACE_DEVICE_PAIR:
        return lay_out_device_pair(request);
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
