#include "machine.h"

#include "fail.h"
#include "numbers.h"

#include <errno.h>
#include <hwloc/linux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool looks_like_file(const char *description) {
    struct stat status;
    size_t length = strlen(description);
    return stat(description, &status) == 0 || strchr(description, '/') ||
           (length > 4 && !strcmp(description + length - 4, ".xml"));
}

static void set_file(hwloc_topology_t topology, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0)
        fail("topology file %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        fail("topology file %s: not a regular file", path);
    if (hwloc_topology_set_xml(topology, path) != 0)
        fail("topology file %s: not a readable hwloc XML file", path);
}

static void set_source(hwloc_topology_t topology, const char *description) {
    if (looks_like_file(description))
        set_file(topology, description);
    else if (hwloc_topology_set_synthetic(topology, description) != 0)
        fail("topology '%s': no such file, and not an hwloc synthetic description", description);
}

/* Placements need packages, NUMA nodes, L3 and L2 caches, cores and hardware threads: the rest only costs
 * time. */
static void leave_out_what_nobody_needs(hwloc_topology_t topology, unsigned parts) {
    static const hwloc_obj_type_t unused[] = {HWLOC_OBJ_L1CACHE,  HWLOC_OBJ_L4CACHE,  HWLOC_OBJ_L5CACHE,
                                              HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2ICACHE, HWLOC_OBJ_L3ICACHE,
                                              HWLOC_OBJ_MEMCACHE, HWLOC_OBJ_MISC};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        hwloc_topology_set_type_filter(topology, unused[i], HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_io_types_filter(topology, parts & WITH_DEVICES ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT
                                                                      : HWLOC_TYPE_FILTER_KEEP_NONE);
    unsigned long flags = 0;
#if HWLOC_API_VERSION >= 0x00020800
    flags |= HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
    if (!(parts & WITH_DISTANCES))
        flags |= HWLOC_TOPOLOGY_FLAG_NO_DISTANCES;
#endif
    hwloc_topology_set_flags(topology, flags);
    /* The x86 component would visit every CPU in turn only to learn its model name. */
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
}

/* Set one of hwloc's variables; returns what it was, for put_back. */
static char *set_variable(const char *name, const char *value) {
    const char *before = getenv(name);
    char *saved = before ? text("%s", before) : NULL;
    setenv(name, value, 1);
    return saved;
}

/* The program that is started sees the environment as it was given. */
static void put_back(const char *name, char *saved) {
    if (saved)
        setenv(name, saved, 1);
    else
        unsetenv(name);
    free(saved);
}

/* Opening a plugin (OpenCL, GL, PCI) can take longer than everything else here, so none is looked for. */
static hwloc_topology_t new_topology(bool plugins) {
    hwloc_topology_t topology;
    char *saved = plugins ? NULL : set_variable("HWLOC_PLUGINS_PATH", "/nonexistent");
    if (hwloc_topology_init(&topology) != 0)
        fail("hwloc cannot be initialised: %s", strerror(errno));
    if (!plugins)
        put_back("HWLOC_PLUGINS_PATH", saved);
    return topology;
}

static void load(hwloc_topology_t topology, const char *description) {
    /* hwloc prints a banner of several lines about a topology that another version of it stored */
    char *saved = set_variable("HWLOC_HIDE_ERRORS", "2");
    if (hwloc_topology_load(topology) != 0)
        fail("%s%s: hwloc cannot load this topology", description ? "topology " : "",
             description ? description : "this host");
    put_back("HWLOC_HIDE_ERRORS", saved);
}

/* What a launcher, taskset or a cgroup left to this process. */
static void narrow_to_entry_affinity(struct machine *machine) {
    hwloc_bitmap_t entry = hwloc_bitmap_alloc();
    if (hwloc_linux_get_tid_cpubind(machine->topology, 0, entry) != 0)
        fail("the CPU affinity of this process cannot be read: %s", strerror(errno));
    hwloc_bitmap_and(machine->allowed, machine->allowed, entry);
    hwloc_bitmap_free(entry);
}

static void narrow_to_list(struct machine *machine, const char *list) {
    hwloc_bitmap_t wanted = hwloc_bitmap_alloc();
    if (!parse_list(list, wanted))
        fail("--allowed: '%s' is not a CPU list such as 0-3,8", list);
    if (!hwloc_bitmap_isincluded(wanted, machine->allowed)) {
        hwloc_bitmap_andnot(wanted, wanted, machine->allowed);
        fail("--allowed %s: CPU %d is not usable on %s", list, hwloc_bitmap_first(wanted), machine->name);
    }
    hwloc_bitmap_copy(machine->allowed, wanted);
    hwloc_bitmap_free(wanted);
}

static char *describe(const struct machine *machine, bool narrowed) {
    if (!narrowed)
        return text("%s", machine->name);
    char *list;
    if (hwloc_bitmap_list_asprintf(&list, machine->allowed) < 0)
        fail("out of memory");
    char *where = text("%s with CPUs %s allowed", machine->name, list);
    free(list);
    return where;
}

struct machine load_whole_machine(const char *description, unsigned parts) {
    struct machine machine = {.topology = new_topology(false)};
    leave_out_what_nobody_needs(machine.topology, parts);
    if (description)
        set_source(machine.topology, description);
    load(machine.topology, description);
    machine.is_this_host = hwloc_topology_is_thissystem(machine.topology) != 0;
    machine.name = text("%s", description ? description : "this host");
    machine.where = text("%s", machine.name);
    machine.allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(machine.topology));
    hwloc_bitmap_and(machine.allowed, machine.allowed, hwloc_topology_get_topology_cpuset(machine.topology));
    return machine;
}

struct machine load_machine(const char *description, const char *name, const char *allowed, unsigned parts) {
    struct machine machine = load_whole_machine(description, parts);
    if (name) {
        free(machine.name);
        machine.name = text("%s", name);
    }
    if (machine.is_this_host)
        narrow_to_entry_affinity(&machine);
    if (allowed)
        narrow_to_list(&machine, allowed);
    bool narrowed =
        !hwloc_bitmap_isequal(machine.allowed, hwloc_topology_get_topology_cpuset(machine.topology));
    free(machine.where);
    machine.where = describe(&machine, narrowed);
    return machine;
}

void free_machine(struct machine *machine) {
    hwloc_bitmap_free(machine->allowed);
    free(machine->name);
    free(machine->where);
    hwloc_topology_destroy(machine->topology);
}

void export_topology(const char *description, const char *file) {
    hwloc_topology_t topology = new_topology(true);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (description)
        set_source(topology, description);
    load(topology, description);
    if (hwloc_topology_export_xml(topology, file, 0) != 0)
        fail("topology cannot be written to %s: %s", file, strerror(errno));
    hwloc_topology_destroy(topology);
}
