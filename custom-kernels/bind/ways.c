/* N ranks spread evenly over the packages, as TACC's tacc_affinity does. */
#include "fail.h"
#include "layout.h"
#include "placement.h"

#include <stdlib.h>
#include <string.h>

/* The cores of one rank: a stretch of `cores`, which holds all cores package by package. */
struct share {
    size_t begin, count;
};

/* Fewer ranks than packages: each rank has `per` whole packages. The first packages, the remainder, stay
 * unused. */
static void share_whole_packages(const struct object_list *packages, unsigned ways, struct share *shares) {
    size_t per = packages->count / ways, package = packages->count % ways, begin = 0;
    for (size_t i = 0; i < package; i++)
        begin += packages->object[i].count;
    for (unsigned rank = 0; rank < ways; rank++) {
        shares[rank].begin = begin;
        for (size_t i = 0; i < per; i++)
            begin += packages->object[package++].count;
        shares[rank].count = begin - shares[rank].begin;
    }
}

/* Rank `index` of the `count` ranks that share a package of `cores` cores. */
static struct share part_of_package(size_t begin, size_t cores, size_t index, size_t count) {
    size_t from = index * cores / count, to = (index + 1) * cores / count;
    return (struct share){begin + from, to - from};
}

/* Has every package `cores` cores? */
static bool all_have(const struct object_list *packages, size_t cores) {
    for (size_t i = 0; i < packages->count; i++)
        if (packages->object[i].count != cores)
            return false;
    return true;
}

/* The package of a rank, where there are at least as many ranks as packages. Consecutive ranks share a
 * package; the remaining ranks are dealt from the first package on. Where that would leave no core of the
 * first package free, they go to the packages after it. */
static size_t package_of(size_t rank, const struct object_list *packages, unsigned ways) {
    size_t each = ways / packages->count, left = ways % packages->count;
    if (left && all_have(packages, each + 1))
        return (rank + 1) / (each + 1);
    return rank < each * packages->count ? rank / each : rank - each * packages->count;
}

static void share_packages(const struct object_list *packages, unsigned ways, struct share *shares) {
    size_t begin = 0;
    for (size_t package = 0; package < packages->count; package++) {
        size_t cores = packages->object[package].count, count = 0, index = 0;
        for (size_t rank = 0; rank < ways; rank++)
            count += package_of(rank, packages, ways) == package;
        for (size_t rank = 0; rank < ways; rank++)
            if (package_of(rank, packages, ways) == package)
                shares[rank] = part_of_package(begin, cores, index++, count);
        begin += cores;
    }
}

static size_t smallest_share(const struct share *shares, unsigned ways) {
    size_t least = shares[0].count;
    for (unsigned i = 1; i < ways; i++)
        if (shares[i].count < least)
            least = shares[i].count;
    return least;
}

static unsigned *cores_by_package(const struct object_list *packages, size_t cores) {
    unsigned *os = allocate(cores, sizeof *os), *at = os;
    for (size_t i = 0; i < packages->count; i++) {
        memcpy(at, packages->object[i].os, packages->object[i].count * sizeof *at);
        at += packages->object[i].count;
    }
    return os;
}

static unsigned threads_of_share(const struct request *request, const struct share *shares, unsigned ways) {
    size_t least = smallest_share(shares, ways);
    unsigned threads = request->threads ? request->threads : (unsigned)least;
    if (threads == 0 || threads > least)
        cannot(request, "%u thread%s for each of %u ranks asked, the evenly spread cores leave %zu to a rank",
               threads ? threads : 1, threads > 1 ? "s" : "", ways, least);
    return threads;
}

struct layout lay_out_ways(const struct request *request) {
    unsigned ways = request->placement->first;
    if (request->ranks > ways)
        cannot(request, "%u ranks asked, this placement has %u", request->ranks, ways);
    if (ways > request->table->cores.count)
        cannot(request, "%u ranks asked, %zu cores", ways, request->table->cores.count);
    struct object_list packages = objects_at(&request->table->cores, LEVEL_PACKAGE);
    struct share *shares = allocate(ways, sizeof *shares);
    if (ways < packages.count)
        share_whole_packages(&packages, ways, shares);
    else
        share_packages(&packages, ways, shares);
    unsigned threads = threads_of_share(request, shares, ways);
    unsigned *os = cores_by_package(&packages, request->table->cores.count);
    struct layout layout = new_layout(request->ranks ? request->ranks : ways, threads);
    for (unsigned rank = 0; rank < layout.ranks; rank++)
        place_rank(&layout, rank, os + shares[rank].begin);
    free(os);
    free(shares);
    free_objects(&packages);
    return layout;
}
