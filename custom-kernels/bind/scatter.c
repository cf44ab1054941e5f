/* Groups of cores dealt as far apart as possible: to ranks, and inside of a rank single cores to its threads.
 */
#include "fail.h"
#include "layout.h"
#include "placement.h"

#include <stdlib.h>

/* From large to small: the levels over which groups are dealt in turn. */
static const enum level dealing[] = {LEVEL_PACKAGE, LEVEL_NUMA, LEVEL_L3};
enum { DEALING = sizeof dealing / sizeof *dealing };

struct group {
    const struct cpu *first; /* says which package, NUMA node and L3 the group is in */
    const unsigned *os;
    size_t beside[DEALING]; /* groups dealt so far in the same objects, from packages down to that level */
    bool dealt;
};

struct groups {
    struct group *group;
    size_t count;
    struct object_list objects; /* whose CPUs they are */
};

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

/* The level whose objects are the smallest that hold a whole rank. Objects are compared by size, not by the
 * order of levels: an L3 cache may span two NUMA nodes, and a NUMA node two packages. */
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

static struct groups new_groups(const struct request *request) {
    return (struct groups){.group = allocate(request->table->cores.count, sizeof(struct group))};
}

/* Cut `count` cores into groups of `size`; what is left over is in none. */
static void cut(const struct request *request, const unsigned *os, size_t count, unsigned size,
                struct groups *groups) {
    for (size_t at = 0; at + size <= count; at += size) {
        const struct cpu *first = find_cpu(&request->table->cores, os[at]);
        groups->group[groups->count++] = (struct group){.first = first, .os = os + at};
    }
}

/* All groups of `size` cores that the node has. */
static struct groups groups_of(const struct request *request, unsigned size) {
    struct groups groups = new_groups(request);
    groups.objects = objects_at(&request->table->cores, container_level(request, size));
    for (size_t i = 0; i < groups.objects.count; i++)
        cut(request, groups.objects.object[i].os, groups.objects.object[i].count, size, &groups);
    return groups;
}

static void free_groups(struct groups *groups) {
    free(groups->group);
    free_objects(&groups->objects);
}

static size_t room_for(const struct request *request, unsigned size) {
    struct groups groups = groups_of(request, size);
    size_t room = groups.count;
    free_groups(&groups);
    return room;
}

/* Is `a` farther from the groups dealt so far than `b`: in a package with fewer of them, else NUMA node, else
 * L3? */
static bool farther(const struct group *a, const struct group *b) {
    for (int depth = 0; depth < DEALING; depth++)
        if (a->beside[depth] != b->beside[depth])
            return a->beside[depth] < b->beside[depth];
    return false;
}

/* The CPUs of the group that is farthest from those dealt so far; of several, the first. */
static const unsigned *deal(struct groups *groups) {
    struct group *best = NULL, *end = groups->group + groups->count;
    for (struct group *it = groups->group; it < end; it++)
        if (!it->dealt && (!best || farther(it, best)))
            best = it;
    best->dealt = true;
    for (struct group *it = groups->group; it < end; it++)
        for (int depth = 0; depth < DEALING; depth++) {
            if (it->first->object[dealing[depth]] != best->first->object[dealing[depth]])
                break;
            it->beside[depth]++;
        }
    return best->os;
}

static unsigned threads_of(const struct request *request) {
    return request->threads ? request->threads : 1;
}

static unsigned ranks_with_room(const struct request *request) {
    unsigned threads = threads_of(request);
    if (threads > request->table->cores.count)
        cannot(request, "%u threads a rank asked, %zu cores", threads, request->table->cores.count);
    size_t room = room_for(request, threads);
    if (request->ranks > room)
        cannot(request, "%u ranks of %u thread%s asked, room for %zu", request->ranks, threads,
               threads == 1 ? "" : "s", room);
    return request->ranks ? request->ranks : (unsigned)room;
}

struct layout lay_out_scatter(const struct request *request) {
    struct layout layout = new_layout(ranks_with_room(request), threads_of(request));
    struct groups groups = groups_of(request, layout.threads);
    for (unsigned rank = 0; rank < layout.ranks; rank++)
        place_rank(&layout, rank, deal(&groups));
    free_groups(&groups);
    return layout;
}

/* Cores of each rank's share: as many as all ranks can have. */
static unsigned share_size(const struct request *request, unsigned ranks) {
    unsigned size = (unsigned)(request->table->cores.count / ranks);
    while (size > threads_of(request) && room_for(request, size) < ranks)
        size--;
    return size;
}

/* Deal the `size` cores of a share to the threads of a rank. */
static void spread_threads(const struct request *request, const unsigned *share, unsigned size,
                           unsigned threads, unsigned *cpu) {
    struct groups cores = new_groups(request);
    cut(request, share, size, 1, &cores);
    for (unsigned thread = 0; thread < threads; thread++)
        cpu[thread] = *deal(&cores);
    free_groups(&cores);
}

struct layout lay_out_spread(const struct request *request) {
    must_know_ranks(request, "the share of a rank depends on");
    unsigned ranks = ranks_with_room(request), size = share_size(request, ranks);
    struct layout layout = new_layout(ranks, request->threads ? request->threads : size);
    struct groups shares = groups_of(request, size);
    for (unsigned rank = 0; rank < ranks; rank++)
        spread_threads(request, deal(&shares), size, layout.threads,
                       layout.cpu + (size_t)rank * layout.threads);
    free_groups(&shares);
    return layout;
}
