/* GPUs, network cards and NVMe drives: where the PCI bus has them, and how far they are from one another. */
#ifndef PLUMB_DEVICES_H
#define PLUMB_DEVICES_H

#include "cputable.h"
#include "device_variables.h"
#include "json.h"
#include "machine.h"

enum device_kind { DEVICE_GPU, DEVICE_NIC, DEVICE_NVME, DEVICE_KINDS };

/* The way between two devices, from near to far: `nvidia-smi topo -m` has a word for each. */
enum way {
    WAY_SELF,
    WAY_SWITCH,   /* one PCIe switch at most */
    WAY_SWITCHES, /* several */
    WAY_BRIDGE,   /* the host bridge */
    WAY_NODE,     /* host bridges of one NUMA node */
    WAY_SYSTEM,   /* between NUMA nodes */
    WAYS
};

struct device {
    enum device_kind kind;
    hwloc_obj_t object;
    hwloc_obj_t near;              /* the object whose CPUs are local to it: the machine if that is unknown */
    char address[20];              /* PCI address, such as 0000:04:00.0 */
    bool fabric;                   /* a network card for MPI: InfiniBand, RoCE, Omni-Path */
    const struct gpu_maker *maker; /* NULL for other devices than GPUs */
    unsigned number;               /* index of a GPU among those of its maker, by PCI address */
    unsigned gpus[GPU_MAKERS];     /* for a GPU: how many the machine has of each maker */
};

struct device_list {
    struct device *device; /* by kind, then by PCI address */
    size_t count;
};

/* The devices of a machine that was loaded with WITH_DEVICES. GPUs are those of the makers in
 * device_variables.c: a server's own display adapter does not count. Free with free_devices. */
struct device_list find_devices(const struct machine *machine);

void free_devices(struct device_list *devices);

/* "GPU", "NIC" or "NVMe". */
const char *device_name(enum device_kind kind);

enum way way_between(const struct device *a, const struct device *b, hwloc_topology_t topology);

/* "X", "PIX", "PXB", "PHB", "NODE" or "SYS". */
const char *way_word(enum way way);

/* Write all devices and the way between each two, in the words of `nvidia-smi topo -m`. */
void write_devices(struct json *out, const struct machine *machine);

#endif
