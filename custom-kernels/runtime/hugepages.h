/* Memory on huge pages where the kernel grants them: fewer address translations for long streams. */
#ifndef PLUMB_KERNEL_HUGEPAGES_H
#define PLUMB_KERNEL_HUGEPAGES_H

#include <stddef.h>

/* Like memory_take, but aligned to a huge page and, if `bytes` is at least one, with the kernel asked for
 * huge pages (MADV_HUGEPAGE). Not getting them is not an error. Give it back with memory_give_back. */
void *memory_take_huge(size_t bytes);

/* Bytes of a transparent huge page; 0 where the kernel has none. */
size_t huge_page_bytes(void);

/* Bytes of this process that lie on transparent huge pages now. */
size_t huge_pages_used(void);

#endif
