/* Memory whose pages lie where they are first touched. */
#ifndef PLUMB_KERNEL_FIRST_TOUCH_H
#define PLUMB_KERNEL_FIRST_TOUCH_H

#include <stddef.h>

/* Collective: exit with one line unless what the ranks of each node ask for together (`bytes` on this rank)
 * fits into the memory that is available there (MemAvailable, and the limit of the control group). Call it
 * before memory_take. */
void memory_need(size_t bytes);

/* `bytes` of page-aligned memory that nobody has touched yet: reading or writing a page decides its NUMA
 * node. */
void *memory_take(size_t bytes);
void memory_give_back(void *memory, size_t bytes);

/* What is available to this process's node now, in bytes. */
size_t memory_available(void);

#endif
