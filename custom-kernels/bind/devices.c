#include "devices.h"

#include "cputable.h"
#include "fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PCI base classes and classes. */
enum { NETWORK = 0x02, DISPLAY = 0x03, ACCELERATOR = 0x12, NVME = 0x0108 };
enum { INFINIBAND = 0x0207, FABRIC = 0x0208, SERIAL_INFINIBAND = 0x0c06 };

const char *device_name(enum device_kind kind) {
    static const char *const names[DEVICE_KINDS] = {"GPU", "NIC", "NVMe"};
    return names[kind];
}

static const struct gpu_maker *maker_of(unsigned vendor) {
    for (const struct gpu_maker *it = gpu_makers; it->visible; it++)
        if (it->vendor == vendor)
            return it;
    return NULL;
}

static bool has_verbs(hwloc_obj_t object) {
    for (hwloc_obj_t child = object->io_first_child; child; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
            return true;
    return false;
}

/* Set kind, maker and fabric of the PCI device. False: it is of no kind that ranks are placed by. */
static bool recognise(struct device *device) {
    const struct hwloc_pcidev_attr_s *pci = &device->object->attr->pcidev;
    unsigned base = pci->class_id >> 8;
    bool channel = pci->class_id == SERIAL_INFINIBAND;
    device->maker = maker_of(pci->vendor_id);
    if ((base == DISPLAY || base == ACCELERATOR) && device->maker) {
        device->kind = DEVICE_GPU;
        return true;
    }
    device->maker = NULL;
    device->kind = base == NETWORK || channel ? DEVICE_NIC : DEVICE_NVME;
    device->fabric =
        channel || pci->class_id == INFINIBAND || pci->class_id == FABRIC || has_verbs(device->object);
    return device->kind == DEVICE_NIC || pci->class_id == NVME;
}

static int compare(const void *left, const void *right) {
    const struct device *a = left, *b = right;
    const struct hwloc_pcidev_attr_s *x = &a->object->attr->pcidev, *y = &b->object->attr->pcidev;
    const int parts[] = {(int)a->kind - (int)b->kind, (int)x->domain - (int)y->domain, x->bus - y->bus,
                         x->dev - y->dev, x->func - y->func};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i])
            return parts[i];
    return 0;
}

static void number_gpus(struct device_list *devices) {
    for (struct device *it = devices->device, *end = it + devices->count; it < end; it++)
        for (struct device *other = devices->device; it->maker && other < end; other++)
            if (other->maker) {
                it->gpus[other->maker - gpu_makers]++;
                it->number += other < it && other->maker == it->maker;
            }
}

struct device_list find_devices(const struct machine *machine) {
    int room = hwloc_get_nbobjs_by_type(machine->topology, HWLOC_OBJ_PCI_DEVICE);
    struct device_list devices = {.device = allocate((size_t)room + 1, sizeof(struct device))};
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_pcidev(machine->topology, object))) {
        const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
        struct device device = {.object = object,
                                .near = hwloc_get_non_io_ancestor_obj(machine->topology, object)};
        snprintf(device.address, sizeof device.address, "%04x:%02x:%02x.%01x", (unsigned)pci->domain,
                 pci->bus, pci->dev, pci->func);
        if (recognise(&device))
            devices.device[devices.count++] = device;
    }
    qsort(devices.device, devices.count, sizeof *devices.device, compare);
    number_gpus(&devices);
    return devices;
}

void free_devices(struct device_list *devices) {
    free(devices->device);
}

/* The innermost bridge above both devices; NULL if they are on different PCI buses. `below` receives the
 * number of bridges between it and the device that has more of them. */
static hwloc_obj_t common_bridge(const struct device *a, const struct device *b, unsigned *below) {
    unsigned from_a = 0;
    for (hwloc_obj_t x = a->object->parent; x->type == HWLOC_OBJ_BRIDGE; x = x->parent, from_a++) {
        unsigned from_b = 0;
        for (hwloc_obj_t y = b->object->parent; y->type == HWLOC_OBJ_BRIDGE; y = y->parent, from_b++)
            if (x == y) {
                *below = from_a > from_b ? from_a : from_b;
                return x;
            }
    }
    return NULL;
}

/* The one NUMA node that is local to the device; NO_OBJECT if there are several or none. Nodes with the same
 * CPUs (HBM beside DRAM) count as one. The `complete` sets also hold what this job may not use, so a job on a
 * part of the machine gets the same way as a job on all of it. */
static int home_of(const struct device *device, hwloc_topology_t topology) {
    int home = hwloc_bitmap_first(device->near->complete_nodeset);
    if (home < 0)
        return NO_OBJECT;
    const struct hwloc_obj *first = hwloc_get_numanode_obj_by_os_index(topology, (unsigned)home);
    for (int node = hwloc_bitmap_next(device->near->complete_nodeset, home); node >= 0;
         node = hwloc_bitmap_next(device->near->complete_nodeset, node)) {
        const struct hwloc_obj *other = hwloc_get_numanode_obj_by_os_index(topology, (unsigned)node);
        if (!first || !other || !hwloc_bitmap_isequal(first->complete_cpuset, other->complete_cpuset))
            return NO_OBJECT;
    }
    return home;
}

const char *way_word(enum way way) {
    static const char *const words[WAYS] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
    return words[way];
}

/* A PCIe switch is a bridge with further ones below it, one for each port. */
enum way way_between(const struct device *a, const struct device *b, hwloc_topology_t topology) {
    unsigned below;
    if (a->object == b->object)
        return WAY_SELF;
    hwloc_obj_t bridge = common_bridge(a, b, &below);
    if (bridge && bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
        return below > 1 ? WAY_SWITCHES : WAY_SWITCH;
    if (bridge)
        return WAY_BRIDGE;
    int home = home_of(a, topology);
    return home != NO_OBJECT && home == home_of(b, topology) ? WAY_NODE : WAY_SYSTEM;
}

static void write_names_of(struct json *out, hwloc_obj_t object) {
    json_open(out, "names", '[');
    for (hwloc_obj_t child = object->io_first_child; child; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->name)
            json_text(out, NULL, child->name);
    json_close(out, ']');
}

/* Ids of the objects of `level` that hold CPUs near the device. */
static void write_near(struct json *out, const char *key, const struct device *device,
                       const struct cpu_table *table, enum level level) {
    struct object_list objects = objects_at(&table->threads, level);
    json_open(out, key, '[');
    for (size_t i = 0; i < objects.count; i++)
        for (size_t j = 0; j < objects.object[i].count; j++)
            if (hwloc_bitmap_isset(device->near->cpuset, objects.object[i].os[j])) {
                json_int(out, NULL, objects.object[i].id);
                break;
            }
    json_close(out, ']');
    free_objects(&objects);
}

static void write_device(struct json *out, const struct device *device, unsigned number,
                         const struct cpu_table *table) {
    const struct hwloc_pcidev_attr_s *pci = &device->object->attr->pcidev;
    char label[24], ids[16], rate[32];
    snprintf(label, sizeof label, "%s%u", device_name(device->kind), number);
    snprintf(ids, sizeof ids, "%04x:%04x", pci->vendor_id, pci->device_id);
    snprintf(rate, sizeof rate, "%.2f", (double)pci->linkspeed);
    json_newline(out);
    json_open(out, NULL, '{');
    json_text(out, "label", label);
    json_text(out, "address", device->address);
    json_text(out, "ids", ids);
    write_names_of(out, device->object);
    json_raw(out, "link_gbytes_s", pci->linkspeed > 0 ? rate : "null");
    write_near(out, "sockets", device, table, LEVEL_PACKAGE);
    write_near(out, "nodes", device, table, LEVEL_NUMA);
    json_open(out, "cpus", '[');
    for (size_t i = 0; i < table->threads.count; i++)
        if (hwloc_bitmap_isset(device->near->cpuset, table->threads.cpu[i].os))
            json_int(out, NULL, table->threads.cpu[i].os);
    json_close(out, ']');
    json_close(out, '}');
}

void write_devices(struct json *out, const struct machine *machine) {
    struct cpu_table table = read_cpu_table(machine);
    struct device_list devices = find_devices(machine);
    unsigned numbers[DEVICE_KINDS] = {0};
    json_open(out, NULL, '{');
    json_text(out, "topology", machine->name);
    json_open(out, "devices", '[');
    for (size_t i = 0; i < devices.count; i++)
        write_device(out, &devices.device[i], numbers[devices.device[i].kind]++, &table);
    json_close(out, ']');
    json_open(out, "ways", '[');
    for (size_t i = 0; i < devices.count; i++) {
        json_newline(out);
        json_open(out, NULL, '[');
        for (size_t j = 0; j < devices.count; j++)
            json_text(out, NULL,
                      way_word(way_between(&devices.device[i], &devices.device[j], machine->topology)));
        json_close(out, ']');
    }
    json_close(out, ']');
    json_close(out, '}');
    free_devices(&devices);
    free_cpu_table(&table);
}
