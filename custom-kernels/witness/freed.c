/* The NUMA nodes of the pages of large blocks that were released before the exit.
 *
 * Every release of a large anonymous block is sampled just before it happens. What is anonymous: a block of
 * malloc always; a mapping only if mmap was seen to make it MAP_ANONYMOUS, for that a small table is kept.
 * Shared anonymous mappings count (Python's mmap.mmap(-1, n) is one); the shared memory segments of MPI
 * libraries are files of /dev/shm, memfd or System V segments, never enter the table and so never count. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "witness.h"

#define SAMPLES 64
#define SLOTS 256
#define BUSY 1 /* no mapping starts at address 1 */

/* Sampling may take CPU time of 1/500 of the run plus 5 ms: a program that allocates in its measured loop (an
 * MPI library's temporary buffers) is then sampled less often instead of being slowed down. */
#define BUDGET_FRACTION 500
#define BUDGET_MICROSECONDS 5000LL

struct slot {
    _Atomic uintptr_t start; /* 0 free, BUSY while being written */
    _Atomic size_t length;
};

static struct slot slots[SLOTS];
static atomic_int slots_used; /* no slot at or above this index was ever filled */
static atomic_bool watching;
static _Atomic long node_pages[WITNESS_MAX_NODES];
static _Atomic long long spent;
static atomic_long sampled_blocks;
static atomic_long skipped_blocks;
static atomic_long untracked_mappings;
static atomic_int sample_errno;
static long long started;

void freed_start(void) {
    started = wall_microseconds();
    atomic_store(&watching, true);
}

void freed_stop(void) {
    atomic_store(&watching, false);
}

void freed_forget(void) {
    for (int node = 0; node < WITNESS_MAX_NODES; node++)
        atomic_store(&node_pages[node], 0);
    atomic_store(&spent, 0);
    atomic_store(&sampled_blocks, 0);
    atomic_store(&skipped_blocks, 0);
    atomic_store(&untracked_mappings, 0);
}

bool freed_watching(void) {
    return atomic_load_explicit(&watching, memory_order_relaxed);
}

static void add_pages(int node, long pages) {
    atomic_fetch_add(&node_pages[node], pages);
}

static void sample(uintptr_t start, size_t length) {
    if (pages_sample(start, length, SAMPLES, add_pages) < 0)
        atomic_store(&sample_errno, errno);
    else
        atomic_fetch_add(&sampled_blocks, 1);
}

void freed_block(uintptr_t start, size_t length) {
    static __thread bool inside;
    if (length < WITNESS_THRESHOLD_BYTES || inside || !preload_is_mine())
        return;
    int saved = errno;
    inside = true;
    long long run = wall_microseconds() - started;
    if (atomic_load(&spent) > run / BUDGET_FRACTION + BUDGET_MICROSECONDS) {
        atomic_fetch_add(&skipped_blocks, 1);
    } else {
        /* CPU time: while others have the processor, the sample costs the program nothing */
        long long begin = cpu_of_thread(0);
        sample(start, length);
        atomic_fetch_add(&spent, cpu_of_thread(0) - begin);
    }
    inside = false;
    errno = saved;
}

static void raise_slots_used(int used) {
    int seen = atomic_load(&slots_used);
    while (seen < used && !atomic_compare_exchange_weak(&slots_used, &seen, used)) {
    }
}

void freed_mapped(uintptr_t start, size_t length) {
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t empty = 0;
        if (atomic_load_explicit(&slots[i].start, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&slots[i].start, &empty, BUSY)) {
            atomic_store(&slots[i].length, length);
            atomic_store(&slots[i].start, start);
            raise_slots_used(i + 1);
            return;
        }
    }
    atomic_fetch_add(&untracked_mappings, 1);
}

bool freed_tracks(uintptr_t address) {
    int used = atomic_load_explicit(&slots_used, memory_order_relaxed);
    for (int i = 0; i < used; i++) {
        uintptr_t start = atomic_load(&slots[i].start);
        if (start > BUSY && address >= start && address - start < atomic_load(&slots[i].length))
            return true;
    }
    return false;
}

/* Keeps of a slot what lies outside [low, high). Of two remaining pieces only the lower is kept: holes cut
 * into a large block are rare, and a lost piece is only a smaller sample. */
static void shrink(struct slot *slot, uintptr_t low, uintptr_t high) {
    uintptr_t start = atomic_load(&slot->start);
    uintptr_t end = start + atomic_load(&slot->length);
    if (low > start) {
        atomic_store(&slot->length, low - start);
    } else if (high < end) {
        atomic_store(&slot->length, end - high);
        atomic_store(&slot->start, high);
    } else {
        atomic_store(&slot->start, 0);
    }
}

void freed_unmapping(uintptr_t start, size_t length, bool released) {
    int used = atomic_load_explicit(&slots_used, memory_order_relaxed);
    for (int i = 0; i < used; i++) {
        uintptr_t slot_start = atomic_load(&slots[i].start);
        uintptr_t slot_end = slot_start + atomic_load(&slots[i].length);
        uintptr_t low = start > slot_start ? start : slot_start;
        uintptr_t high = start + length < slot_end ? start + length : slot_end;
        if (slot_start <= BUSY || low >= high)
            continue;
        if (released)
            freed_block(low, high - low);
        shrink(&slots[i], low, high);
    }
}

void freed_write(struct json *out) {
    json_open(out, "freed_nodes", '{');
    for (int node = 0; node < WITNESS_MAX_NODES; node++) {
        long pages = atomic_load(&node_pages[node]);
        if (pages > 0)
            json_numbered(out, (unsigned)node, pages);
    }
    json_close(out, '}');
    json_int(out, "freed_blocks", atomic_load(&sampled_blocks));
    json_int(out, "freed_blocks_skipped", atomic_load(&skipped_blocks));
    json_int(out, "untracked_mappings", atomic_load(&untracked_mappings));
}

const char *freed_unavailable(void) {
    int fault = atomic_load(&sample_errno);
    return fault == 0 ? NULL : strerror(fault);
}
