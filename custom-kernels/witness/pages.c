#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "witness.h"

#define BATCH 64

size_t page_bytes(void) {
    static size_t bytes;
    if (bytes == 0)
        bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

/* Asks for the nodes of `count` pages; a page that is not present gets a negative status. */
static bool query(void **pages, int *status, size_t count) {
    for (size_t i = 0; i < count; i++)
        status[i] = -1;
    return syscall(SYS_move_pages, 0, count, pages, NULL, status, 0) >= 0;
}

/* The number of statuses from `first` on with the node of the first; each is set to -1, so that it is counted
 * once. */
static size_t take_same(int *status, size_t first, size_t count) {
    int node = status[first];
    size_t hits = 0;
    for (size_t i = first; i < count; i++) {
        if (status[i] == node) {
            hits++;
            status[i] = -1;
        }
    }
    return hits;
}

/* No array of all nodes here: this runs inside free(), on the stack of any thread. */
static long count_batch(int *status, size_t count, double weight, page_counter add) {
    long added = 0;
    for (size_t i = 0; i < count; i++) {
        int node = status[i];
        if (node >= 0 && node < WITNESS_MAX_NODES) {
            long pages = (long)((double)take_same(status, i, count) * weight + 0.5);
            add(node, pages);
            added += pages;
        }
    }
    return added;
}

long pages_sample(uintptr_t start, size_t length, size_t samples, page_counter add) {
    uintptr_t first = start & ~(uintptr_t)(page_bytes() - 1);
    /* A page cut at the end belongs to the next block. */
    size_t pages = (start + length - first) / page_bytes();
    if (samples > pages)
        samples = pages;
    double weight = samples == 0 ? 0.0 : (double)pages / (double)samples;
    long added = 0;
    for (size_t from = 0; from < samples; from += BATCH) {
        void *address[BATCH];
        int status[BATCH];
        size_t count = samples - from < BATCH ? samples - from : BATCH;
        for (size_t i = 0; i < count; i++) {
            size_t page = (size_t)(((double)(from + i) + 0.5) * weight);
            address[i] = (void *)(first + page * page_bytes());
        }
        if (!query(address, status, count))
            return -1;
        added += count_batch(status, count, weight, add);
    }
    return added;
}
