/* Ranks next to devices: each on cores that are local to its own GPU or network card or, for gpu:far, on
 * cores of another package. */
#include "fail.h"
#include "layout.h"
#include "placement.h"

#include <stdlib.h>

/* The devices that take ranks. Where a machine has a fabric, its other network cards carry no messages. */
static struct device_list usable_devices(const struct request *request) {
    enum device_kind kind = request->placement->device;
    struct device_list devices = find_devices(request->machine);
    bool fabric = false;
    for (size_t i = 0; i < devices.count; i++)
        fabric |= devices.device[i].kind == kind && devices.device[i].fabric;
    size_t count = 0;
    for (size_t i = 0; i < devices.count; i++)
        if (devices.device[i].kind == kind && devices.device[i].fabric == fabric)
            devices.device[count++] = devices.device[i];
    devices.count = count;
    if (count == 0)
        cannot(request, "no %s", device_name(kind));
    return devices;
}

/* A GPU has one rank at most; several ranks may send through one network card. */
static unsigned ranks_on(const struct request *request, const struct device_list *devices) {
    must_know_ranks(request, "decides the cores of each rank");
    if (request->placement->device == DEVICE_GPU)
        return ranks_within(request, devices->count, "GPUs");
    return request->ranks ? request->ranks : (unsigned)devices->count;
}

/* The CPUs of the package that follows the device's own. */
static hwloc_bitmap_t far_cpus(const struct request *request, const struct device *device) {
    struct object_list packages = objects_at(&request->table->cores, LEVEL_PACKAGE);
    hwloc_obj_t own = device->near;
    while (own && own->type != HWLOC_OBJ_PACKAGE)
        own = own->parent;
    if (!own)
        cannot(request, "%s %s is near to no single socket", device_name(device->kind), device->address);
    size_t next = 0;
    for (size_t i = 0; i < packages.count; i++)
        if (packages.object[i].id == (int)own->logical_index)
            next = (i + 1) % packages.count;
    const struct object *package = &packages.object[next];
    if (package->id == (int)own->logical_index)
        cannot(request, "no second socket with allowed CPUs");
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    for (size_t i = 0; i < package->count; i++)
        hwloc_bitmap_set(cpus, package->os[i]);
    free_objects(&packages);
    return cpus;
}

/* Take the first `threads` cores of the rank's region that no rank has; returns how many there were. */
static unsigned take(const struct request *request, struct layout *layout, unsigned rank,
                     hwloc_bitmap_t region, hwloc_bitmap_t taken) {
    const struct cpu_list *cores = &request->table->cores;
    unsigned count = 0;
    for (size_t i = 0; i < cores->count && count < layout->threads; i++) {
        unsigned os = cores->cpu[i].os;
        if (!hwloc_bitmap_isset(region, os) || hwloc_bitmap_isset(taken, os))
            continue;
        layout->cpu[(size_t)rank * layout->threads + count++] = os;
        hwloc_bitmap_set(taken, os);
    }
    return count;
}

/* The rank not yet `done` that has the smallest region: ranks with larger regions have more cores to choose
 * from later. */
static unsigned narrowest(hwloc_bitmap_t *region, const bool *done, unsigned ranks) {
    unsigned best = ranks;
    for (unsigned rank = 0; rank < ranks; rank++)
        if (!done[rank] &&
            (best == ranks || hwloc_bitmap_weight(region[rank]) < hwloc_bitmap_weight(region[best])))
            best = rank;
    return best;
}

/* Give every rank its cores. Returns the rank for which too few are left, or the number of ranks. */
static unsigned deal(const struct request *request, struct layout *layout, hwloc_bitmap_t *region) {
    bool *done = allocate(layout->ranks, sizeof *done);
    hwloc_bitmap_t taken = hwloc_bitmap_alloc();
    unsigned short_of = layout->ranks;
    for (unsigned count = 0; count < layout->ranks && short_of == layout->ranks; count++) {
        unsigned rank = narrowest(region, done, layout->ranks);
        done[rank] = true;
        if (take(request, layout, rank, region[rank], taken) < layout->threads)
            short_of = rank;
    }
    hwloc_bitmap_free(taken);
    free(done);
    return short_of;
}

/* Without a number of threads, the largest that every rank can have. */
static struct layout fit(const struct request *request, hwloc_bitmap_t *region, struct device *device,
                         unsigned ranks) {
    unsigned most = (unsigned)request->table->cores.count / ranks;
    unsigned threads = request->threads ? request->threads : most ? most : 1;
    for (;; threads--) {
        struct layout layout = new_layout(ranks, threads);
        layout.device = device;
        unsigned short_of = deal(request, &layout, region);
        if (short_of == ranks)
            return layout;
        if (threads == 1 || request->threads)
            cannot(request, "%u rank%s of %u thread%s asked, too few cores %s %s %s", ranks,
                   ranks == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
                   request->placement->kind == PLACE_DEVICE_FAR ? "far from" : "near",
                   device_name(device[short_of].kind), device[short_of].address);
        layout.device = NULL;
        free_layout(&layout);
    }
}

/* Rank r beside `device[r]`, which the layout takes. */
static struct layout beside(const struct request *request, struct device *device, unsigned ranks) {
    hwloc_bitmap_t *region = allocate(ranks, sizeof *region);
    for (unsigned rank = 0; rank < ranks; rank++)
        region[rank] = request->placement->kind == PLACE_DEVICE_FAR
                           ? far_cpus(request, &device[rank])
                           : hwloc_bitmap_dup(device[rank].near->cpuset);
    struct layout layout = fit(request, region, device, ranks);
    for (unsigned rank = 0; rank < ranks; rank++)
        hwloc_bitmap_free(region[rank]);
    free(region);
    return layout;
}

/* The device with this number, by PCI address, of those that take ranks. */
static const struct device *numbered(const struct request *request, const struct device_list *devices,
                                     unsigned number) {
    if (number >= devices->count)
        cannot(request, "there is no %s %u", device_name(request->placement->device), number);
    return &devices->device[number];
}

static unsigned one_rank(const struct request *request) {
    if (request->ranks > 1)
        cannot(request, "%u ranks asked, this placement has one", request->ranks);
    return 1;
}

struct layout lay_out_devices(const struct request *request) {
    struct device_list devices = usable_devices(request);
    bool single = request->placement->argument;
    unsigned ranks = single ? one_rank(request) : ranks_on(request, &devices);
    struct device *device = allocate(ranks, sizeof *device);
    for (unsigned rank = 0; rank < ranks; rank++)
        device[rank] = single ? *numbered(request, &devices, request->placement->first)
                              : devices.device[rank % devices.count];
    free_devices(&devices);
    return beside(request, device, ranks);
}

/* Those that are named, or the first two by PCI address; then GPUs are of one maker. */
static struct device *pair_of(const struct request *request, const struct device_list *devices) {
    enum way way = request->placement->way;
    if (way == WAYS) {
        struct device *pair = allocate(2, sizeof *pair);
        pair[0] = *numbered(request, devices, request->placement->first);
        pair[1] = *numbered(request, devices, request->placement->second);
        return pair;
    }
    for (const struct device *a = devices->device, *end = a + devices->count; a < end; a++)
        for (const struct device *b = a; b < end; b++)
            if (a->maker == b->maker && way_between(a, b, request->machine->topology) == way) {
                struct device *pair = allocate(2, sizeof *pair);
                pair[0] = *a;
                pair[1] = *b;
                return pair;
            }
    cannot(request, "no two %ss%s have the way %s between them", device_name(request->placement->device),
           request->placement->device == DEVICE_GPU ? " of one maker" : "", way_word(way));
}

struct layout lay_out_device_pair(const struct request *request) {
    if (request->ranks > 2 || (request->ranks_known && request->ranks == 1))
        cannot(request, "%u rank%s asked, a pair has two", request->ranks, request->ranks == 1 ? "" : "s");
    struct device_list devices = usable_devices(request);
    struct device *pair = pair_of(request, &devices);
    free_devices(&devices);
    return beside(request, pair, 2);
}
