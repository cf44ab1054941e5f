/* What has to be equal on nodes of one kind, as the kernel reports it. */
#ifndef PLUMB_CHECK_FACTS_H
#define PLUMB_CHECK_FACTS_H

#include "class.h"

#include <stdbool.h>
#include <stddef.h>

enum { MOST_FACTS = 512 };

struct facts {
    struct named list[MOST_FACTS];
    size_t count;
    bool dimms_refused; /* the table of memory modules is there, but not for this user */
};

/* Read them all. `vectors`: the instructions that the loops use. */
void facts_read(struct facts *facts, const char *vectors);

/* The value of a fact here; NULL without one. */
const char *facts_value(const struct facts *facts, const char *name);

/* Whether a value that was found is the one expected: sizes of memory (`memory.…`, in MiB) may differ by 1 %,
 * which is what kernels of different versions keep for themselves. */
bool fact_equal(const char *name, const char *expected, const char *found);

/* Memory modules as "16 x 32768 MiB 4800 MT/s", of the firmware's table `bytes` (SMBIOS, type 17); NULL if it
 * names none. */
const char *dimms_of(const unsigned char *table, size_t bytes);

#endif
