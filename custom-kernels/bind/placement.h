/* Placements: their names, and the way from a name to a layout. */
#ifndef PLUMB_PLACEMENT_H
#define PLUMB_PLACEMENT_H

#include "cputable.h"
#include "devices.h"
#include "json.h"

#include <stdio.h>

enum placement_kind {
    PLACE_NONE,
    PLACE_COMPACT,
    PLACE_ROUND_ROBIN, /* on one node like compact; over nodes, ranks are dealt in turn */
    PLACE_SCATTER,     /* ranks far apart, the threads of each close together */
    PLACE_SPREAD,      /* ranks far apart, and the threads of each over its share of the node */
    PLACE_CORE,
    PLACE_OBJECT,     /* l3, numa, socket, node: one rank per object of `level` */
    PLACE_ONE_OBJECT, /* numa:N, socket:N: one rank on object `first` of `level` */
    PLACE_SMT,
    PLACE_DEVICE,      /* a rank for each device of kind `device`, or for the `first`, on CPUs near to it */
    PLACE_DEVICE_FAR,  /* a rank for each such device, on CPUs of another package */
    PLACE_DEVICE_PAIR, /* ranks on two devices with this `way` between, or (WAYS) on `first` and `second` */
    PLACE_WAYS,        /* `first` ranks a node, spread evenly over its packages */
    PLACE_PAIR_CLASS,  /* two ranks whose smallest common object is of `level` */
    PLACE_PAIR_NODE,
    PLACE_PAIR_CPUS, /* two ranks on CPUs `first` and `second` */
};

struct placement {
    const char *name;     /* as given */
    const char *argument; /* what follows the name: numbers "N" or "I,J", or "WAY|I,J"; NULL: nothing */
    enum placement_kind kind;
    enum level level;
    enum device_kind device;
    enum way way;
    unsigned first, second;
};

/* Read a placement. Fails on an unknown name, with the closest known one and the list of all, and on a wrong
 * argument. */
struct placement parse_placement(const char *name);

/* Whether it binds ranks: every placement but none does. */
bool is_bound(const struct placement *placement);

/* How many nodes a job needs at least. */
unsigned nodes_needed(const struct placement *placement);

/* How ranks map to nodes: "block" (node after node) or "cyclic" (rank r on node r mod n). */
const char *map_of(const struct placement *placement);

/* The memory policy where none is asked for. */
const char *default_memory(const struct placement *placement);

/* What the machine must be loaded with: machine_parts. */
unsigned parts_needed(const struct placement *placement);

/* Write the names of all placements. */
void write_names(const char *separator, FILE *file);

/* Write all placements as JSON, with what is known of each without a machine. */
void write_list(struct json *out);

struct request;
struct layout;

/* Resolve a placement on one node. Fails if the node cannot satisfy it. Free with free_layout. */
struct layout lay_out(const struct request *request);

/* The parts of lay_out that have their own file. */
struct layout lay_out_scatter(const struct request *request);
struct layout lay_out_spread(const struct request *request);
struct layout lay_out_ways(const struct request *request);
struct layout lay_out_devices(const struct request *request);
struct layout lay_out_device_pair(const struct request *request);
struct layout lay_out_pair_class(const struct request *request);
struct layout lay_out_pair_cpus(const struct request *request);
struct layout lay_out_pair_node(const struct request *request);

#endif
