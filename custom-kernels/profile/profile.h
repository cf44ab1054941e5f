/* libplumbprofile.so: what a rank spends in MPI. Preloaded, it comes before any MPI library: handles
 * pass through as 64-bit values, so that no mpi.h is needed. What differs by binary interface is in `abi`.
 *
 * It keeps sums only, in tables of fixed size; what does not fit is counted. A call that the library makes
 * itself, inside another, is not counted. */
#ifndef PLUMB_PROFILE_H
#define PLUMB_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls.h"
#include "json.h"
#include "mpi_library.h"
#include "next_function.h"
#include "preload.h"

/* Which entry point was called: how its arguments are to be read. */
enum form { C_FORM, LARGE_FORM, FORTRAN_FORM, FORMS };

struct arguments {
    enum form form;
    uint64_t *at;
};

/* library.c: the MPI library behind this one. */

enum { STATUS_BYTES = 32 };

extern struct abi abi;

/* The library's own functions that the profile calls for facts. */
/* clang-format formats this list differently each time. */
/* clang-format off */
#define ASKED(X) \
    X(Comm_rank) X(Comm_group) X(Comm_remote_group) X(Comm_test_inter) X(Group_rank) \
    X(Group_size) X(Group_translate_ranks) X(Group_free) X(Win_get_group) X(Type_size) X(Get_elements_x) \
    X(Topo_test) X(Cartdim_get) X(Graph_neighbors_count) X(Dist_graph_neighbors_count) \
    X(Query_thread) X(Barrier)
/* clang-format on */
#define ASKED_FIELD(Name) any_function Name;
extern struct asked {
    ASKED(ASKED_FIELD)
} asked;
/* Call a function of the library with up to five words. */
int ask(any_function function, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);

/* False: there is no MPI library that can be profiled. */
bool library_find(void);
/* The functions behind the calls that were made so far. */
extern _Atomic any_function library_known[FORMS][CALLS];
/* The function behind `call`, looked for; NULL: the library has none. */
any_function library_searched(enum call_id call, enum form form);
/* Put another function behind the C form; NULL: the library's again, which is searched at the next call. */
void library_replace(enum call_id call, any_function function);

/* call_arguments.c: reading them. */

/* Handle number `index` of the list that the argument points to (a request, or a handle that is freed). */
uint64_t handle_behind(const struct arguments *arguments, int position, size_t index, const char *kind);
/* Element `index` of a list of counts. */
long long count_in(const struct arguments *arguments, int position, size_t index);
bool is_in_place(const struct arguments *arguments, int position);
/* The sum of `ranks` counts times their type, or each times its own (`types`). */
long long sum_of(const struct arguments *arguments, int count, int type, int ranks, bool types);

enum { SIZES = 256 };

extern struct size {
    uint64_t type;
    int bytes;
    bool known;
} sizes[SIZES];

static inline struct size *size_place(uint64_t type) {
    return &sizes[(type * 0x9E3779B97F4A7C15u) >> 56];
}
/* Asks the library, and keeps the answer. */
long long size_asked(uint64_t type);
void forget_type(uint64_t type);

/* communicators.c */

enum { RECENT = 64, COMMUNICATORS = 64, NOWHERE = 0, OTHERS = COMMUNICATORS - 1 };

struct communicator {
    uint64_t key; /* its handle */
    bool known, live, window, inter;
    int size, rank, neighbours;
    uint64_t members; /* a hash of their numbers in MPI_COMM_WORLD: the same on all of them */
    const int *world; /* those numbers; NULL: there was no room */
};
extern struct communicator communicators[COMMUNICATORS];
extern long long communicators_lost, members_lost;

/* The processes of MPI_COMM_WORLD, or those of a session where MPI_Init was not called; 0: there are none. */
uint64_t communicators_world(const void *session);
/* The session is about to be finalised: nothing of it may be left. */
void communicators_leave(void);
bool communicators_start(void);
extern signed char communicators_recent[RECENT];

/* The place where a communicator with this hash was found last. */
static inline signed char *communicator_guess(uint64_t key) {
    return &communicators_recent[(key * 0x9E3779B97F4A7C15u) >> 58];
}
/* The place of a communicator in the table, by a search; a new one is added (OTHERS: no room). */
int communicator_searched(uint64_t key, bool window);
void communicator_forget(uint64_t key, bool window);

/* totals.c: the sums. */

enum { BINS = 48 }; /* 0: no bytes; b: from 2^(b-1) bytes */

struct cell {
    uint64_t count, time, least_time, most_time; /* ticks */
    uint64_t bytes, least_bytes, most_bytes;
    uint64_t completed, completion; /* requests that completed, and the ticks from the call to that */
    uint64_t waited;                /* ticks in the barrier before a collective call, if that is asked for */
};

struct peer {
    uint64_t sent_messages, sent_bytes, received_messages, received_bytes;
};

extern struct cell (*cells)[CALLS][BINS];
extern struct peer *peers;
extern int world_size;

bool totals_start(int ranks);
void received(int world, long long bytes);
extern long long peers_unknown;
/* Removes what the measurement of the profile's own cost has added. */
void totals_clear(struct cell *cell, int world);
void totals_write(struct json *out, double ns_per_tick);

/* requests.c. Its times are without those while the profile was off. A request is counted where both the call
 * that made or started it and the one that found it complete are (`counts`). */

extern long long requests_lost;
void request_begin(const struct arguments *arguments, int position, const struct call *call,
                   struct cell *cell, int communicator, int peer, long long bytes, uint64_t now);
void request_start(uint64_t key, uint64_t now, bool counts);
void request_forget(uint64_t key);

/* What must be known of a waiting call before it is made, while its requests still exist. */
struct waiting {
    size_t count; /* of requests; 0: too many */
    int status;   /* position of the status, -1 if none can be read */
};
struct waiting waiting_before(enum call_id call, struct arguments *arguments);
void waiting_after(enum call_id call, const struct arguments *arguments, const struct waiting *waiting,
                   uint64_t now, bool counts);
/* The status argument, replaced by one of ours where the program ignores it; -1: it cannot be read. */
int status_readable(struct arguments *arguments, int position);
/* What a receive brought, by its status. */
void received_by(const void *status, int communicator);

/* profile.c */

uint64_t ticks_now(void);

#endif
