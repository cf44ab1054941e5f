/* In which variables a process is told which GPUs it may use: the one table for plumb-bind and the witness.
 */
#ifndef PLUMB_DEVICE_VARIABLES_H
#define PLUMB_DEVICE_VARIABLES_H

/* A maker of GPUs. `order`, if there is one, must be `by_address` for numbers to count in order of PCI
 * addresses. */
struct gpu_maker {
    unsigned vendor; /* PCI vendor id */
    const char *visible, *order, *by_address;
};

/* Ended by one without a variable. */
extern const struct gpu_maker gpu_makers[];

enum { DEVICE_LISTS = 4, DEVICE_VARIABLES = 5 };

/* All variables that choose GPUs, those of the makers too: DEVICE_LISTS of them are lists of GPUs, the others
 * say how these are read. Ended by NULL. */
extern const char *const device_variables[DEVICE_VARIABLES + 1];

#endif
