/* Excursions: a thread that binds itself to CPUs that its rank does not have, and back again. hwloc and
 * programs with a detection of their own ask each processor for microseconds at their start. What counts is
 * the CPU time meanwhile, the migrations, and when the last one ended.
 *
 * Seen are the C library's calls. Who leaves by the system call alone is seen at the return: then all CPU
 * time of the thread counts; its migrations are seen in any case. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "witness.h"

#define TRAVELLERS 256 /* threads with excursions; the migrations of more stay unexplained */

static struct traveller {
    pid_t tid; /* 0: free */
    bool away;
    struct away at; /* when it left */
    struct away sum;
} travellers[TRAVELLERS];
static atomic_flag busy = ATOMIC_FLAG_INIT;

static struct traveller *traveller_of(pid_t tid, bool wanted) {
    struct traveller *room = NULL;
    for (size_t i = 0; i < TRAVELLERS; i++) {
        if (travellers[i].tid == tid)
            return &travellers[i];
        if (room == NULL && travellers[i].tid == 0)
            room = &travellers[i];
    }
    if (wanted && room != NULL) {
        memset(room, 0, sizeof *room);
        room->tid = tid;
        return room;
    }
    return NULL;
}

static void lock(void) {
    while (atomic_flag_test_and_set(&busy))
        sched_yield();
}

static struct away here(pid_t tid) {
    return (struct away){cpu_of_thread(tid), threads_migrations(tid), 0};
}

static void arrive(struct traveller *traveller, struct away now) {
    traveller->sum.cpu += now.cpu - traveller->at.cpu;
    traveller->sum.migrations += now.migrations - traveller->at.migrations;
    traveller->sum.until = window_passed();
}

struct departure excursions_before(pid_t tid, const void *cpus, size_t size) {
    struct departure before = {tid, false, {0, 0, 0}};
    if (tid == 0)
        before.tid = (pid_t)syscall(SYS_gettid);
    before.outside = threads_is_outside(before.tid);
    if (!before.outside && threads_leaves(cpus, size))
        before.at = here(before.tid);
    return before;
}

void excursions_after(struct departure before) {
    int saved = errno;
    bool outside = threads_is_outside(before.tid);
    if (outside != before.outside && preload_is_mine()) {
        struct away now = outside ? before.at : here(before.tid);
        lock();
        struct traveller *traveller = traveller_of(before.tid, true);
        if (traveller != NULL && outside) {
            traveller->at = now;
        } else if (traveller != NULL) {
            if (!traveller->away) /* nobody saw it leave */
                traveller->at = (struct away){0, now.migrations, 0};
            arrive(traveller, now);
        }
        if (traveller != NULL)
            traveller->away = outside;
        atomic_flag_clear(&busy);
    }
    errno = saved;
}

struct away excursions_of(pid_t tid, bool ends) {
    lock();
    struct traveller *traveller = traveller_of(tid, false);
    struct away sum = {0, 0, 0};
    if (traveller != NULL) {
        if (traveller->away) {
            struct away now = here(tid);
            arrive(traveller, now);
            traveller->at = now;
        }
        sum = traveller->sum;
        if (ends)
            traveller->tid = 0;
    }
    atomic_flag_clear(&busy);
    return sum;
}

void excursions_count_from_here(pid_t tid) {
    lock();
    struct traveller *traveller = traveller_of(tid, false);
    if (traveller != NULL) {
        traveller->sum = (struct away){0, 0, 0};
        traveller->at = here(tid);
    }
    atomic_flag_clear(&busy);
}

void excursions_forget(void) {
    memset(travellers, 0, sizeof travellers);
    atomic_flag_clear(&busy);
}
