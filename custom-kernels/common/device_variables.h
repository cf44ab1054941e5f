/* The variables that tell a process which GPUs it may use: one table for plumb-bind and the witness. */
#ifndef PLUMB_DEVICE_VARIABLES_H
#define PLUMB_DEVICE_VARIABLES_H

/* A maker of GPUs. The variable `visible` lists device numbers. The variable `order`, if there is one, must
 * have the value `by_address`, so that these numbers follow the order of PCI addresses. */
struct gpu_maker {
    unsigned vendor; /* PCI vendor id */
    const char *visible, *order, *by_address;
};

enum { GPU_MAKERS = 2, DEVICE_LISTS = 4, DEVICE_VARIABLES = 5 };

/* The last entry has no `visible`. */
extern const struct gpu_maker gpu_makers[GPU_MAKERS + 1];

/* All variables that choose GPUs, those of the makers too: DEVICE_LISTS of them are lists of GPUs, the others
 * say how these are read. Ended by NULL. */
extern const char *const device_variables[DEVICE_VARIABLES + 1];

/* By place in device_variables: whose GPUs a list is of, a place in gpu_makers. */
extern const int device_list_maker[DEVICE_LISTS];

#endif
