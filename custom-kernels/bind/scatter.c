/* Groups of T cores, dealt as far apart as possible. */
#include "fail.h"
#include "layout.h"
#include "placement.h"

#include <stdlib.h>

struct group {
    const struct cpu *first; /* says which package, NUMA node and L3 the group is in */
    const unsigned *os;
    bool dealt;
};

/* From large to small: the levels over which ranks are dealt in turn. */
static const enum level dealing[] = {LEVEL_PACKAGE, LEVEL_NUMA, LEVEL_L3};
enum { DEALING = sizeof dealing / sizeof *dealing };

/* Cores of the largest object; 0 if some of `cores` are in no object: a level that leaves cores out holds
 * none. */
static size_t largest(const struct object_list *objects, size_t cores) {
    size_t most = 0, all = 0;
    for (size_t i = 0; i < objects->count; i++) {
        all += objects->object[i].count;
        if (objects->object[i].count > most)
            most = objects->object[i].count;
    }
    return all == cores ? most : 0;
}

/* The level whose objects are the smallest that hold a whole rank. By size and not by rank: an L3 cache may
 * span two NUMA nodes, and a NUMA node two packages. */
static enum level container_level(const struct request *request, unsigned threads) {
    const struct cpu_list *cores = &request->table->cores;
    enum level best = LEVEL_MACHINE;
    size_t best_size = cores->count;
    for (enum level level = LEVEL_MACHINE; level-- > LEVEL_L3;) {
        struct object_list objects = objects_at(cores, level);
        size_t size = largest(&objects, cores->count);
        if (size >= threads && size <= best_size) {
            best = level;
            best_size = size;
        }
        free_objects(&objects);
    }
    return best;
}

static size_t make_groups(const struct request *request, const struct object_list *objects, unsigned threads,
                          struct group *groups) {
    size_t count = 0;
    for (size_t i = 0; i < objects->count; i++)
        for (size_t at = 0; at + threads <= objects->object[i].count; at += threads) {
            const unsigned *os = objects->object[i].os + at;
            groups[count++] = (struct group){.first = find_cpu(&request->table->cores, *os), .os = os};
        }
    return count;
}

/* Do the two lie in the same object of dealing level `depth` and of all those around it? */
static bool together(const struct group *a, const struct group *b, int depth) {
    for (int i = 0; i <= depth; i++)
        if (a->first->object[dealing[i]] != b->first->object[dealing[i]])
            return false;
    return true;
}

static size_t dealt_beside(const struct group *groups, size_t count, const struct group *group, int depth) {
    size_t dealt = 0;
    for (size_t i = 0; i < count; i++)
        if (groups[i].dealt && together(&groups[i], group, depth))
            dealt++;
    return dealt;
}

/* Is `a` farther from the ranks dealt so far than `b`: in a package with fewer of them, else NUMA node, else
 * L3? */
static bool farther(const struct group *groups, size_t count, const struct group *a, const struct group *b) {
    for (int depth = 0; depth < DEALING; depth++) {
        size_t beside_a = dealt_beside(groups, count, a, depth),
               beside_b = dealt_beside(groups, count, b, depth);
        if (beside_a != beside_b)
            return beside_a < beside_b;
    }
    return false;
}

static struct group *next_group(struct group *groups, size_t count) {
    struct group *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (!groups[i].dealt && (!best || farther(groups, count, &groups[i], best)))
            best = &groups[i];
    return best;
}

struct layout lay_out_scatter(const struct request *request) {
    unsigned threads = request->threads ? request->threads : 1;
    if (threads > request->table->cores.count)
        cannot(request, "%u threads a rank asked, %zu cores", threads, request->table->cores.count);
    struct object_list objects = objects_at(&request->table->cores, container_level(request, threads));
    struct group *groups = allocate(request->table->cores.count, sizeof *groups);
    size_t count = make_groups(request, &objects, threads, groups);
    if (request->ranks > count)
        cannot(request, "%u ranks of %u thread%s asked, room for %zu", request->ranks, threads,
               threads == 1 ? "" : "s", count);
    struct layout layout = new_layout(request->ranks ? request->ranks : (unsigned)count, threads);
    for (unsigned rank = 0; rank < layout.ranks; rank++) {
        struct group *group = next_group(groups, count);
        group->dealt = true;
        place_rank(&layout, rank, group->os);
    }
    free(groups);
    free_objects(&objects);
    return layout;
}
