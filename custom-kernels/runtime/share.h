/* How work is dealt out: contiguous shares, equal but for one unit. */
#ifndef PLUMB_KERNEL_SHARE_H
#define PLUMB_KERNEL_SHARE_H

#include <stddef.h>

/* The half-open range [begin, end). */
struct share {
    size_t begin, end;
};

/* Share `part` of `parts` of [0, total), cut at multiples of `unit`. Where more parts than units exist, some
 * are empty. The shares together are the whole and never overlap. */
struct share share_of(size_t total, size_t unit, int part, int parts);

#endif
