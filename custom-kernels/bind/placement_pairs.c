/* Two threads at a chosen distance: of two ranks, or of one rank. */
#include "distance.h"
#include "layout.h"
#include "placement.h"

/* A pair holds two threads in all: two ranks of one, or with --threads 2 one rank of two. */
static unsigned ranks_of_pair(const struct request *request) {
    if (request->threads > 2)
        cannot(request, "%u threads a rank asked, a pair holds two in all", request->threads);
    if (request->threads == 2 && request->ranks > 1)
        cannot(request, "%u ranks of 2 threads asked, a pair holds two threads in all", request->ranks);
    if (request->threads == 2)
        return 1;
    bool too_few = request->ranks_known && request->ranks == 1;
    if (too_few || request->ranks > 2)
        cannot(request, "%u rank%s asked, a pair has two", request->ranks, too_few ? "" : "s");
    return 2;
}

static struct layout pair_of(unsigned ranks, unsigned first, unsigned second) {
    struct layout layout = new_layout(ranks, 2 / ranks);
    layout.cpu[0] = first;
    layout.cpu[1] = second;
    return layout;
}

static _Noreturn void no_such_pair(const struct request *request) {
    static const char *const shortage[LEVELS] = {
        "no core has two allowed hardware threads",
        "no two cores share an L2 cache",
        "no two cores share an L3 cache and nothing smaller",
        "no two cores share a NUMA node and nothing smaller",
        "no two cores share a socket and nothing smaller",
        "no second socket with allowed CPUs",
    };
    cannot(request, "%s", shortage[request->placement->level]);
}

struct layout lay_out_pair_class(const struct request *request) {
    unsigned ranks = ranks_of_pair(request);
    enum level level = request->placement->level;
    const struct cpu_list *list = level == LEVEL_CORE ? &request->table->threads : &request->table->cores;
    for (size_t i = 0; i < list->count; i++)
        for (size_t j = i + 1; j < list->count; j++)
            if (smallest_common_level(&list->cpu[i], &list->cpu[j]) == level)
                return pair_of(ranks, list->cpu[i].os, list->cpu[j].os);
    no_such_pair(request);
}

struct layout lay_out_pair_cpus(const struct request *request) {
    unsigned ranks = ranks_of_pair(request);
    const unsigned wanted[] = {request->placement->first, request->placement->second};
    for (int i = 0; i < 2; i++)
        if (!find_cpu(&request->table->threads, wanted[i]))
            cannot(request, "CPU %u may not be used or does not exist", wanted[i]);
    return pair_of(ranks, wanted[0], wanted[1]);
}

struct layout lay_out_pair_node(const struct request *request) {
    single_thread(request);
    if (request->ranks > 1)
        cannot(request, "%u ranks asked, this placement has one on each of two nodes", request->ranks);
    struct layout layout = new_layout(1, 1);
    layout.cpu[0] = request->table->cores.cpu[0].os;
    return layout;
}
