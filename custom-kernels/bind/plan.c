#include "plan.h"

#include "fail.h"

#include <stdio.h>
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
    struct plan plan = {.placement = request->placement,
                        .memory = memory->name,
                        .topology = request->machine->name,
                        .layout = lay_out(request)};
    plan.rank = allocate(plan.layout.ranks, sizeof *plan.rank);
    for (unsigned i = 0; i < plan.layout.ranks; i++) {
        struct rank_plan *rank = &plan.rank[i];
        rank->cpus = cpus_of(request, &plan.layout, i);
        rank->place = plan.layout.cpu ? plan.layout.cpu + (size_t)i * plan.layout.threads : NULL;
        rank->device = plan.layout.device ? plan.layout.device + i : NULL;
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

static void write_set(struct json *out, const char *key, hwloc_const_bitmap_t set) {
    json_open(out, key, '[');
    for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i))
        json_int(out, NULL, i);
    json_close(out, ']');
}

/* The variables that leave the rank this GPU only, by its number among those of its maker. */
static void write_device_variables(struct json *out, const struct device *device) {
    char number[16];
    snprintf(number, sizeof number, "%u", device->number);
    json_open(out, "environment", '{');
    if (device->maker->order)
        json_text(out, device->maker->order, device->maker->by_address);
    json_text(out, device->maker->visible, number);
    json_close(out, '}');
}

static void write_device_of(struct json *out, const struct device *device) {
    json_open(out, "devices", '[');
    json_text(out, NULL, device->address);
    json_close(out, ']');
    if (device->maker)
        write_device_variables(out, device);
}

void write_rank(struct json *out, const struct plan *plan, unsigned index) {
    static const char *const policies[] = {"none", "bind", "interleave"};
    const struct rank_plan *rank = &plan->rank[index];
    json_open(out, NULL, '{');
    json_int(out, "local_rank", index);
    write_set(out, "cpus", rank->cpus);
    json_open(out, "places", '[');
    for (unsigned thread = 0; rank->place && thread < plan->layout.threads; thread++) {
        json_open(out, NULL, '[');
        json_int(out, NULL, rank->place[thread]);
        json_close(out, ']');
    }
    json_close(out, ']');
    json_open(out, "mem", '{');
    json_text(out, "policy", policies[rank->policy]);
    write_set(out, "nodes", rank->nodes);
    json_close(out, '}');
    if (rank->device)
        write_device_of(out, rank->device);
    json_close(out, '}');
}

void write_plan(struct json *out, const struct plan *plan) {
    json_open(out, NULL, '{');
    json_text(out, "placement", plan->placement->name);
    json_int(out, "threads", plan->layout.threads);
    json_text(out, "memory", plan->memory);
    json_text(out, "topology", plan->topology);
    json_bool(out, "bound", is_bound(plan->placement));
    json_text(out, "map", map_of(plan->placement));
    json_int(out, "nodes", nodes_needed(plan->placement));
    json_open(out, "ranks", '[');
    for (unsigned rank = 0; rank < plan->layout.ranks; rank++) {
        json_newline(out);
        write_rank(out, plan, rank);
    }
    json_close(out, ']');
    json_close(out, '}');
}
