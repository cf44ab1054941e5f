#include "plan.h"

#include "fail.h"

#include <stdlib.h>

static hwloc_bitmap_t cpus_of(const struct request *request, const struct layout *layout, unsigned rank) {
    if (!layout->cpu)
        return hwloc_bitmap_dup(request->machine->allowed);
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    for (unsigned thread = 0; thread < layout->threads; thread++)
        hwloc_bitmap_set(cpus, layout->cpu[(size_t)rank * layout->threads + thread]);
    return cpus;
}

struct plan make_plan(const struct request *request, const struct memory *memory) {
    struct plan plan = {.placement = request->placement->name,
                        .memory = memory->name,
                        .topology = request->machine->name,
                        .layout = lay_out(request)};
    plan.rank = allocate(plan.layout.ranks, sizeof *plan.rank);
    for (unsigned i = 0; i < plan.layout.ranks; i++) {
        struct rank_plan *rank = &plan.rank[i];
        rank->cpus = cpus_of(request, &plan.layout, i);
        rank->place = plan.layout.cpu ? plan.layout.cpu + (size_t)i * plan.layout.threads : NULL;
        rank->nodes = hwloc_bitmap_alloc();
        rank->policy = place_memory(memory, request->machine, request->table, rank->cpus, rank->nodes);
    }
    return plan;
}

void free_plan(struct plan *plan) {
    for (unsigned i = 0; i < plan->layout.ranks; i++) {
        hwloc_bitmap_free(plan->rank[i].cpus);
        hwloc_bitmap_free(plan->rank[i].nodes);
    }
    free(plan->rank);
    free_layout(&plan->layout);
}

static void write_set(hwloc_const_bitmap_t set, FILE *file) {
    const char *before = "";
    for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) {
        fprintf(file, "%s%d", before, i);
        before = ",";
    }
}

static void write_string(const char *string, FILE *file) {
    putc('"', file);
    for (; *string; string++) {
        unsigned char character = (unsigned char)*string;
        if (character < ' ')
            fprintf(file, "\\u%04x", character);
        else if (character == '"' || character == '\\')
            fprintf(file, "\\%c", character);
        else
            putc(character, file);
    }
    putc('"', file);
}

void write_rank(const struct plan *plan, unsigned index, FILE *file) {
    static const char *const policies[] = {"none", "bind", "interleave"};
    const struct rank_plan *rank = &plan->rank[index];
    fprintf(file, "{\"local_rank\":%u,\"cpus\":[", index);
    write_set(rank->cpus, file);
    fputs("],\"places\":[", file);
    for (unsigned thread = 0; rank->place && thread < plan->layout.threads; thread++)
        fprintf(file, "%s[%u]", thread ? "," : "", rank->place[thread]);
    fprintf(file, "],\"mem\":{\"policy\":\"%s\",\"nodes\":[", policies[rank->policy]);
    write_set(rank->nodes, file);
    fputs("]}}", file);
}

void write_plan(const struct plan *plan, FILE *file) {
    fputs("{\"placement\":", file);
    write_string(plan->placement, file);
    fprintf(file, ",\"threads\":%u,\"memory\":", plan->layout.threads);
    write_string(plan->memory, file);
    fputs(",\"topology\":", file);
    write_string(plan->topology, file);
    fputs(",\"ranks\":[\n", file);
    for (unsigned rank = 0; rank < plan->layout.ranks; rank++) {
        write_rank(plan, rank, file);
        fputs(rank + 1 < plan->layout.ranks ? ",\n" : "\n", file);
    }
    fputs("]}\n", file);
}
