/* Two threads that take turns: a cache line goes back and forth between their cores. */
#ifndef PLUMB_KERNEL_TURNS_H
#define PLUMB_KERNEL_TURNS_H

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

/* Two lines: processors fetch the neighbour of a line too. */
enum { TURNS_APART = 128, TURNS_SPINS = 10000 };

struct word {
    alignas(TURNS_APART) _Atomic uint64_t turn;
};

/* Wait until the number `turn` has come. */
static inline void await_turn(struct word *word, uint64_t turn) {
    for (long looks = 1; atomic_load_explicit(&word->turn, memory_order_acquire) != turn; looks++)
        if (looks % TURNS_SPINS == 0) /* the other thread has no CPU */
            sched_yield();
}

/* The turns of one thread in `trips` round trips from number `first` on: the even ones for thread 0, the odd
 * ones for thread 1. */
static inline void take_turns(struct word *word, uint64_t first, uint64_t trips, int thread) {
    for (uint64_t turn = first + (uint64_t)thread; turn < first + 2 * trips; turn += 2) {
        await_turn(word, turn);
        atomic_store_explicit(&word->turn, turn + 1, memory_order_release);
    }
}

#endif
