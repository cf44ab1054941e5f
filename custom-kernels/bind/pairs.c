/* Two ranks at a chosen distance. */
#include "layout.h"
#include "placement.h"

static void two_ranks(const struct request *request) {
    bool too_few = request->ranks_known && request->ranks == 1;
    if (too_few || request->ranks > 2)
        cannot(request, "%u rank%s asked, a pair has two", request->ranks, too_few ? "" : "s");
    single_thread(request);
}

/* The level of the smallest object that both CPUs are in. Equal objects count as the smaller level. Across
 * packages it is the machine, whatever else spans them (one NUMA node on a machine with uniform memory). */
static enum level smallest_common(const struct cpu *a, const struct cpu *b) {
    if (a->object[LEVEL_PACKAGE] != b->object[LEVEL_PACKAGE])
        return LEVEL_MACHINE;
    enum level best = LEVEL_PACKAGE;
    for (enum level level = LEVEL_PACKAGE; level-- > LEVEL_CORE;)
        if (a->object[level] != NO_OBJECT && a->object[level] == b->object[level] &&
            a->weight[level] <= a->weight[best])
            best = level;
    return best;
}

static struct layout pair_of(unsigned first, unsigned second) {
    struct layout layout = new_layout(2, 1);
    layout.cpu[0] = first;
    layout.cpu[1] = second;
    return layout;
}

static _Noreturn void no_such_pair(const struct request *request) {
    static const char *const shortage[LEVELS] = {
        "no core has two allowed hardware threads",
        "no two cores share an L3 cache and nothing smaller",
        "no two cores share a NUMA node and nothing smaller",
        "no two cores share a socket and nothing smaller",
        "no second socket with allowed CPUs",
    };
    cannot(request, "%s", shortage[request->placement->level]);
}

struct layout lay_out_pair_class(const struct request *request) {
    two_ranks(request);
    enum level level = request->placement->level;
    const struct cpu_list *list = level == LEVEL_CORE ? &request->table->threads : &request->table->cores;
    for (size_t i = 0; i < list->count; i++)
        for (size_t j = i + 1; j < list->count; j++)
            if (smallest_common(&list->cpu[i], &list->cpu[j]) == level)
                return pair_of(list->cpu[i].os, list->cpu[j].os);
    no_such_pair(request);
}

struct layout lay_out_pair_cpus(const struct request *request) {
    two_ranks(request);
    const unsigned wanted[] = {request->placement->first, request->placement->second};
    for (int i = 0; i < 2; i++)
        if (!find_cpu(&request->table->threads, wanted[i]))
            cannot(request, "CPU %u may not be used or does not exist", wanted[i]);
    return pair_of(wanted[0], wanted[1]);
}

struct layout lay_out_pair_node(const struct request *request) {
    single_thread(request);
    if (request->ranks > 1)
        cannot(request, "%u ranks asked, this placement has one on each of two nodes", request->ranks);
    struct layout layout = new_layout(1, 1);
    layout.cpu[0] = request->table->cores.cpu[0].os;
    return layout;
}
