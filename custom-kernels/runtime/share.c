#include "share.h"

/* units * part / parts without the overflow of the product. */
static size_t cut(size_t units, size_t part, size_t parts) {
    return units / parts * part + units % parts * part / parts;
}

struct share share_of(size_t total, size_t unit, int part, int parts) {
    size_t units = (total + unit - 1) / unit;
    size_t begin = cut(units, (size_t)part, (size_t)parts) * unit;
    size_t end = cut(units, (size_t)part + 1, (size_t)parts) * unit;
    return (struct share){begin < total ? begin : total, end < total ? end : total};
}
