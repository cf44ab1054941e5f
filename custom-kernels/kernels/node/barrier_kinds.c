#include "barrier_kinds.h"

#include "fail_together.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Two lines: processors fetch the neighbour of a line too. */
enum { APART = 128, MOST_ROUNDS = 16 };

const char *const kind_names[KINDS + 1] = {"pthread",       "openmp",       "spin",
                                           "dissemination", "hierarchical", NULL};

/* A word that has its cache line for itself. */
struct word {
    alignas(APART) atomic_uint value;
};

/* Counter and sense of the sense-reversing barrier, on one line: whoever arrives last then owns what it has
 * to write. */
struct central {
    alignas(APART) atomic_uint arrived;
    atomic_uint sense;
};

/* The state of one thread. */
struct own {
    alignas(APART) unsigned sense; /* of SPIN */
    unsigned near_sense, epoch;    /* of HIERARCHICAL and DISSEMINATION */
    int group;
    struct word signal[MOST_ROUNDS]; /* DISSEMINATION: the epoch in which the partner of a round has come */
};

struct team {
    int threads, groups, rounds;
    long spins;
    pthread_barrier_t pthread;
    struct central all, far; /* of SPIN, and between the groups of HIERARCHICAL */
    struct central *near;    /* one per group */
    unsigned *members;       /* threads of a group */
    struct own *own;
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait until *word has reached or passed `value`; yield the CPU after every `spins` looks. */
static inline void await(atomic_uint *word, unsigned value, long spins) {
    long left = spins;
    while ((int)(atomic_load_explicit(word, memory_order_acquire) - value) < 0) {
        relax();
        if (--left <= 0) {
            sched_yield();
            left = spins;
        }
    }
}

/* The last of `members` to arrive gets true; then the counter is ready for the next time. */
static inline bool arrive(struct central *central, unsigned members) {
    if (atomic_fetch_add_explicit(&central->arrived, 1, memory_order_acq_rel) + 1 < members)
        return false;
    atomic_store_explicit(&central->arrived, 0, memory_order_relaxed);
    return true;
}

static inline void release(struct central *central, unsigned sense) {
    atomic_store_explicit(&central->sense, sense, memory_order_release);
}

/* The sense counts the barriers; its lowest bit is the flag that textbooks reverse. */
static void wait_spin(struct team *team, struct own *own) {
    unsigned sense = ++own->sense;
    if (arrive(&team->all, (unsigned)team->threads))
        release(&team->all, sense);
    else
        await(&team->all.sense, sense, team->spins);
}

/* In round r a thread signals the one 2^r ahead, and waits for the one 2^r behind: log2 n rounds, no counter.
 * A partner may be in the next epoch already, but not further. */
static void wait_dissemination(struct team *team, struct own *own, int thread) {
    unsigned epoch = ++own->epoch;
    for (int round = 0; round < team->rounds; round++) {
        int partner = (thread + (1 << round)) % team->threads;
        atomic_store_explicit(&team->own[partner].signal[round].value, epoch, memory_order_release);
        await(&own->signal[round].value, epoch, team->spins);
    }
}

/* The group's last thread meets those of the other groups, then lets its own group go. */
static void wait_hierarchical(struct team *team, struct own *own) {
    unsigned sense = ++own->near_sense;
    struct central *near = &team->near[own->group];
    if (!arrive(near, team->members[own->group])) {
        await(&near->sense, sense, team->spins);
        return;
    }
    if (team->groups > 1) {
        if (arrive(&team->far, (unsigned)team->groups))
            release(&team->far, sense);
        else
            await(&team->far.sense, sense, team->spins);
    }
    release(near, sense);
}

void team_wait(struct team *team, enum kind kind, int thread) {
    struct own *own = &team->own[thread];
    switch (kind) {
    case PTHREAD:
        pthread_barrier_wait(&team->pthread);
        break;
    case OPENMP: {
#pragma omp barrier
        break;
    }
    case SPIN:
        wait_spin(team, own);
        break;
    case DISSEMINATION:
        wait_dissemination(team, own, thread);
        break;
    default:
        wait_hierarchical(team, own);
        break;
    }
}

/* Numbers from 0 for the groups in the order in which they appear, and how many threads each has. */
static void number_groups(struct team *team, const int *group) {
    for (int thread = 0; thread < team->threads; thread++) {
        int before = 0;
        while (group[before] != group[thread])
            before++;
        team->own[thread].group = before < thread ? team->own[before].group : team->groups++;
        team->members[team->own[thread].group]++;
    }
}

struct team *team_new(int threads, const int *group, long spins) {
    struct team *team = allocate_apart(1, sizeof *team);
    team->threads = threads;
    team->spins = spins;
    while (1 << team->rounds < threads)
        team->rounds++;
    pthread_barrier_init(&team->pthread, NULL, (unsigned)threads);
    team->near = allocate_apart((size_t)threads, sizeof *team->near);
    team->own = allocate_apart((size_t)threads, sizeof *team->own);
    team->members = allocate((size_t)threads, sizeof *team->members);
    number_groups(team, group);
    return team;
}

void team_free(struct team *team) {
    pthread_barrier_destroy(&team->pthread);
    free(team->near);
    free(team->own);
    free(team->members);
    free(team);
}
