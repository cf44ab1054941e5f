/* Memory whose pages lie on the NUMA node of the thread that first writes them. */
#ifndef PLUMB_KERNEL_FIRST_TOUCH_H
#define PLUMB_KERNEL_FIRST_TOUCH_H

#include <stddef.h>

/* Collective: exit with one line unless what the ranks of each node ask for together (`bytes` on this rank)
 * fits into the memory that is available there (MemAvailable, and the limit of the control group). Call it
 * before memory_take. */
void memory_need(size_t bytes);

/* `bytes` of page-aligned memory that nobody has touched yet: the first write to a page decides its NUMA
 * node, unless a memory policy does. Fails if there is no address space. Free with memory_give_back. */
void *memory_take(size_t bytes);
void memory_give_back(void *memory, size_t bytes);

/* Bytes that are available on the host of this process now, within the limits of its control group. */
size_t memory_available(void);

#endif
