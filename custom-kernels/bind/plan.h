/* The plan of one node: made from a request and a memory policy, written as JSON
 * (plumbline/base/schemas/plan.json). */
#ifndef PLUMB_PLAN_H
#define PLUMB_PLAN_H

#include "json.h"
#include "layout.h"
#include "memory_policy.h"

struct rank_plan {
    hwloc_bitmap_t cpus;
    const unsigned *place;       /* OS index of a CPU per thread; NULL: placement none */
    const struct device *device; /* NULL: the placement chooses none */
    enum policy policy;
    hwloc_bitmap_t nodes;
};

struct plan {
    const struct placement *placement;
    const char *memory, *topology;
    struct layout layout;
    struct rank_plan *rank; /* layout.ranks of them */
};

/* Resolve placement and memory policy for every rank. Fails if the machine cannot satisfy them. The placement
 * and the strings are borrowed. Free with free_plan. */
struct plan make_plan(const struct request *request, const struct memory *memory);

void free_plan(struct plan *plan);

/* Write the plan, one line per rank. */
void write_plan(struct json *out, const struct plan *plan);

/* Write one element of the plan's "ranks". */
void write_rank(struct json *out, const struct plan *plan, unsigned rank);

#endif
