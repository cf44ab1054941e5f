/* Requests that are not complete: when they were made, and what they transfer.
 *
 * One handle may stand for several requests at once: MPICH has one for all sends that are done already. */
#include <stdlib.h>
#include <string.h>

#include "hot.h"

enum { PLACES = 1 << 14, FULL = PLACES * 3 / 4, TOGETHER = 1024 };

long long requests_lost;

static struct pending {
    uint64_t key; /* 0: free */
    uint64_t since;
    struct cell *cell;
    long long bytes;
    int communicator, peer;
    bool sends, receives, persists, active;
} table[PLACES];
static unsigned held;

/* Of a thread that waits. Not among the variables that every thread has: these are part of its stack, which
 * may be as small as the system allows. */
static __thread struct room {
    uint64_t keys[TOGETHER];
    _Alignas(8) char statuses[TOGETHER * STATUS_BYTES];
} *room;

static bool has_room(void) {
    if (room == NULL)
        room = preload_room(sizeof *room);
    return room != NULL;
}

static unsigned home_of(uint64_t key) {
    return (unsigned)((key * 0x9E3779B97F4A7C15u) >> 50);
}

static struct pending *find(uint64_t key) {
    for (unsigned at = home_of(key); table[at].key != 0; at = (at + 1) % PLACES)
        if (table[at].key == key)
            return &table[at];
    return NULL;
}

/* What follows moves up, so that no search ends too early. */
static void remove_at(struct pending *one) {
    unsigned hole = (unsigned)(one - table), at = hole;
    held--;
    for (;;) {
        at = (at + 1) % PLACES;
        if (table[at].key == 0)
            break;
        unsigned home = home_of(table[at].key);
        bool stays = hole <= at ? hole < home && home <= at : hole < home || home <= at;
        if (!stays) {
            table[hole] = table[at];
            hole = at;
        }
    }
    table[hole].key = 0;
}

void request_begin(const struct arguments *arguments, int position, const struct call *call,
                   struct cell *cell, int communicator, int peer, long long bytes, uint64_t now) {
    uint64_t key = handle_behind(arguments, position, 0, "Request");
    if (key == 0 || held >= FULL) {
        requests_lost++;
        return;
    }
    unsigned at = home_of(key);
    while (table[at].key != 0)
        at = (at + 1) % PLACES;
    bool persists = call->ends == PERSISTS;
    table[at] = (struct pending){
        key,      now,      cell, bytes, communicator, peer, call->role == SENDS, call->role == RECEIVES,
        persists, !persists};
    held++;
}

void request_start(uint64_t key, uint64_t now, bool counts) {
    struct pending *one = find(key);
    if (one == NULL)
        return;
    one->since = now;
    one->active = counts;
    if (counts && one->sends)
        sent(one->peer, one->bytes);
}

void request_forget(uint64_t key) {
    struct pending *one = find(key);
    if (one != NULL)
        remove_at(one);
}

static void completed(uint64_t key, const void *status, uint64_t now, bool counts) {
    struct pending *one = find(key);
    if (one == NULL || !one->active)
        return;
    if (counts) {
        one->cell->completed++;
        one->cell->completion += now - one->since;
        if (one->receives && status != NULL)
            received_by(status, one->communicator);
        else if (one->receives)
            peers_unknown++;
    }
    one->active = false;
    if (!one->persists)
        remove_at(one);
}

int status_readable(struct arguments *arguments, int position) {
    static int **one, **all; /* what the library exports */
    uint64_t *status = &arguments->at[position];
    bool ignored = *status < 4096; /* MPI_STATUS_IGNORE is 0 or 1 */
    if (arguments->form == FORTRAN_FORM) {
        if (one == NULL)
            one = mpi_variable("MPI_F_STATUS_IGNORE");
        if (all == NULL)
            all = mpi_variable("MPI_F_STATUSES_IGNORE");
        if (one == NULL || all == NULL)
            return -1;
        ignored = *status == WORD(*one) || *status == WORD(*all);
    }
    if (ignored && !has_room())
        return -1;
    if (ignored)
        *status = WORD(room->statuses);
    return position;
}

void received_by(const void *status, int communicator) {
    int source;
    long long bytes = 0;
    memcpy(&source, (const int *)status + abi.source, sizeof source);
    if (source < 0 || ask(asked.Get_elements_x, WORD(status), abi.byte, WORD(&bytes), 0, 0) != 0)
        return;
    if (communicator == NOWHERE)
        peers_unknown++;
    else
        received(world_rank(communicator, source), bytes > 0 ? bytes : 0);
}

static const struct waits {
    signed char number, requests, flag, done, which;
} waits[CALLS] = {
#define ROW(Name, number, requests, flag, done, which) [CALL_##Name] = {number, requests, flag, done, which},
    WAITING_CALLS(ROW)};

struct waiting waiting_before(enum call_id call, struct arguments *arguments) {
    const struct waits *how = &waits[call];
    long long number = how->number == NO ? 1 : integer_at(arguments, how->number);
    if (number < 0 || number > TOGETHER || !has_room()) {
        requests_lost += number > 0 ? number : 0;
        return (struct waiting){0, -1};
    }
    for (long long index = 0; index < number; index++)
        room->keys[index] = handle_behind(arguments, how->requests, (size_t)index, "Request");
    return (struct waiting){(size_t)number, status_readable(arguments, calls[call].arguments - 1)};
}

void waiting_after(enum call_id call, const struct arguments *arguments, const struct waiting *waiting,
                   uint64_t now, bool counts) {
    const struct waits *how = &waits[call];
    if (waiting->count == 0 || (how->flag != NO && integer_behind(arguments, how->flag, 0) == 0))
        return;
    const char *status = waiting->status < 0 ? NULL : (const char *)(uintptr_t)arguments->at[waiting->status];
    long long first = arguments->form == FORTRAN_FORM; /* where indices begin */
    long long done = how->done != NO    ? integer_behind(arguments, how->done, 0)
                     : how->which != NO ? 1
                                        : (long long)waiting->count;
    for (long long index = 0; index < done; index++) {
        long long which =
            how->which != NO ? integer_behind(arguments, how->which, (size_t)index) - first : index;
        if (which >= 0 && which < (long long)waiting->count)
            completed(room->keys[which], status == NULL ? NULL : status + index * abi.status, now, counts);
    }
}
