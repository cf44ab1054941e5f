/* Start and end of a profile, and the one function that every wrapper calls. */
#include "hot.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { COST_CALLS = 2000, COST_ROUNDS = 5, KEEP_PART = 10, KEEP_COST = 1000, KEEP_FIRST_NS = 100000000 };

#define ROW(Name, name, ...) [CALL_##Name] = {#Name, #name, __VA_ARGS__},
#define PLAIN_ROW(...) ROW(__VA_ARGS__, LISTED) /* they have no form for large counts */
const struct call calls[CALLS] = {COUNTED_CALLS(ROW) PLAIN_CALLS(PLAIN_ROW)};

static bool counting, by_clock, threads_meet, splits_waiting;
static bool has_world;      /* MPI_Init was called */
static atomic_int sessions; /* that are open */
static int rank, ranks, thread_level;
static const char *ended = "killed"; /* by what, if this document is the last one */
static uint64_t began_ticks, keep_at = UINT64_MAX;
/* MPI_Pcontrol: how often the profile was switched off or on, so it is off where this is odd; the ticks that
 * it was off, and when it was switched off last. */
static unsigned switches;
static uint64_t off_ticks, off_at;
static struct timespec began;
static long long cost_ps, clock_ps; /* of counting one call, and of reading the clock twice, in picoseconds */
static atomic_int threads;
static struct sigaction before_us;
static atomic_flag written = ATOMIC_FLAG_INIT, taken = ATOMIC_FLAG_INIT;
static __thread bool inside, seen_thread;

/* No fence: it would cost more than the few instructions of the library that may be on the wrong side of the
 * reading. */
uint64_t ticks_now(void) {
    if (!by_clock) {
#if defined(__x86_64__)
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
        uint64_t value;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
        return value;
#endif
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long long nanoseconds_between(const struct timespec *from, const struct timespec *to) {
    return (to->tv_sec - from->tv_sec) * 1000000000LL + to->tv_nsec - from->tv_nsec;
}

static bool counter_is_steady(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static bool is_off(void) {
    return switches % 2 != 0;
}

static void lock(void) {
    while (threads_meet && atomic_flag_test_and_set_explicit(&taken, memory_order_acquire))
        ;
}

static void unlock(void) {
    if (threads_meet)
        atomic_flag_clear_explicit(&taken, memory_order_release);
}

/* The functions take integers, pointers and handles, which all travel in words of 64 bits. */
HOT int invoke(any_function function, int count, const uint64_t *a) {
#define U uint64_t
#define CALL_WITH(n, types, ...)                                                                             \
    case n:                                                                                                  \
        return ((int(*) types)function)(__VA_ARGS__);
    switch (count) {
        CALL_WITH(1, (U), a[0])
        CALL_WITH(2, (U, U), a[0], a[1])
        CALL_WITH(3, (U, U, U), a[0], a[1], a[2])
        CALL_WITH(4, (U, U, U, U), a[0], a[1], a[2], a[3])
        CALL_WITH(5, (U, U, U, U, U), a[0], a[1], a[2], a[3], a[4])
        CALL_WITH(6, (U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5])
        CALL_WITH(7, (U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6])
        CALL_WITH(8, (U, U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])
        CALL_WITH(9, (U, U, U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8])
        CALL_WITH(10, (U, U, U, U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8],
                  a[9])
        CALL_WITH(11, (U, U, U, U, U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8],
                  a[9], a[10])
        CALL_WITH(12, (U, U, U, U, U, U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7],
                  a[8], a[9], a[10], a[11])
        CALL_WITH(13, (U, U, U, U, U, U, U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7],
                  a[8], a[9], a[10], a[11], a[12])
        CALL_WITH(14, (U, U, U, U, U, U, U, U, U, U, U, U, U, U), a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                  a[7], a[8], a[9], a[10], a[11], a[12], a[13])
    default:
        return -1;
    }
#undef U
}

/* What is known of a call before it is made. */
struct seen {
    int communicator, peer, status;
    unsigned switches;
    long long bytes;
    uint64_t freed;
    struct waiting waiting;
};

HOT struct seen look_before(enum call_id id, struct arguments *arguments) {
    const struct call *call = &calls[id];
    struct seen seen = {.communicator = NOWHERE, .peer = -1, .status = -1, .switches = switches};
    bool one_sided = call->role == PUTS || call->role == GETS;
    if (one_sided)
        seen.communicator = communicator_find(handle_of(arguments, call->comm, "Win"), true);
    else if (call->comm != NO)
        seen.communicator = communicator_find(handle_of(arguments, call->comm, "Comm"), false);
    const struct communicator *comm = &communicators[seen.communicator];
    if (call->shape != NONE &&
        !(call->role == COLLECTIVE && comm->inter)) /* in it, the root decides which count is valid */
        seen.bytes =
            bytes_of(call, arguments, comm->rank, call->role == NEIGHBOUR ? comm->neighbours : comm->size);
    if (call->peer != NO && call->role != RECEIVES)
        seen.peer = world_rank(seen.communicator, integer_at(arguments, call->peer));
    if (call->ends == RETURNS && (call->role == RECEIVES || call->role == EXCHANGES))
        seen.status = status_readable(arguments, call->arguments - 1);
    if (call->role == WAITS)
        seen.waiting = waiting_before(id, arguments);
    switch (id) { /* their handles are gone afterwards */
    case CALL_Comm_free:
    case CALL_Comm_disconnect:
        communicator_forget(handle_behind(arguments, 0, 0, "Comm"), false);
        break;
    case CALL_Win_free:
        communicator_forget(handle_behind(arguments, 0, 0, "Win"), true);
        break;
    case CALL_Type_free:
        forget_type(handle_behind(arguments, 0, 0, "Type"));
        break;
    case CALL_Request_free:
        request_forget(handle_behind(arguments, 0, 0, "Request"));
        break;
    default:
        break;
    }
    return seen;
}

HOT void start_requests(const struct call *call, const struct arguments *arguments, uint64_t now,
                        bool counts) {
    long long number = call->count == NO ? 1 : integer_at(arguments, call->count);
    for (long long index = 0; index < number; index++)
        request_start(handle_behind(arguments, call->arguments - 1, (size_t)index, "Request"), now, counts);
}

/* A call during which the profile is or was off counts nothing; its requests are followed all the same. */
HOT void look_after(enum call_id id, const struct arguments *arguments, const struct seen *seen,
                    uint64_t begin, uint64_t end, uint64_t waited) {
    const struct call *call = &calls[id];
    struct cell *cell = cell_of(seen->communicator, id, seen->bytes);
    bool counts = seen->switches == switches && !is_off();
    if (counts) {
        cell_add(cell, end - begin, seen->bytes);
        cell->waited += waited;
    }
    if (counts && call->ends != PERSISTS) {
        if (call->role == SENDS || call->role == EXCHANGES || call->role == PUTS)
            sent(seen->peer, seen->bytes);
        else if (call->role == GETS)
            received(seen->peer, seen->bytes);
    }
    if (call->ends == PERSISTS || (counts && call->ends == REQUESTS))
        request_begin(arguments, call->arguments - 1, call, cell, seen->communicator, seen->peer, seen->bytes,
                      begin - off_ticks);
    if (counts && seen->status >= 0)
        received_by((const void *)(uintptr_t)arguments->at[seen->status], seen->communicator);
    if (call->role == STARTS)
        start_requests(call, arguments, begin - off_ticks, counts);
    if (call->role == WAITS)
        waiting_after(id, arguments, &seen->waiting, end - off_ticks, counts);
}

/* A separate barrier before a collective call: the rest of the call's time is then not waiting for other
 * ranks. Also where the profile is off: it may be on in other ranks. */
HOT uint64_t wait_for_all(const struct call *call, const struct seen *seen,
                          const struct arguments *arguments) {
    if (call->role != COLLECTIVE || call->ends != RETURNS || communicators[seen->communicator].inter)
        return 0;
    uint64_t begin = ticks_now();
    ask(asked.Barrier, handle_of(arguments, call->comm, "Comm"), 0, 0, 0, 0);
    return ticks_now() - begin;
}

static void keep(uint64_t now);

HOT int counted(any_function function, enum call_id id, struct arguments *arguments) {
    if (!seen_thread) {
        seen_thread = true;
        atomic_fetch_add(&threads, 1);
    }
    inside = true;
    lock();
    struct seen seen = look_before(id, arguments);
    unlock();
    uint64_t waited = splits_waiting ? wait_for_all(&calls[id], &seen, arguments) : 0;
    int count = calls[id].arguments + (arguments->form == FORTRAN_FORM);
    uint64_t begin = ticks_now();
    int fault = invoke(function, count, arguments->at);
    uint64_t end = ticks_now();
    if (arguments->form == FORTRAN_FORM)
        fault = (int)integer_behind(arguments, count - 1, 0);
    if (fault == 0) {
        lock();
        look_after(id, arguments, &seen, begin, end, waited);
        if (end >= keep_at)
            keep(end);
        unlock();
    }
    inside = false;
    return fault;
}

/* The plain form in place of the one for large counts: mpi4py asks the dynamic linker for the latter, finds
 * it here, and calls it with libraries that have none. A single count that fits an int is passed in the same
 * way in both forms; lists of counts are not. */
static any_function plain_form(enum call_id id, const uint64_t *words) {
    unsigned counts = calls[id].counts;
    bool fits = counts != LISTED;
    for (int position = 0; counts >> position; position++)
        fits = fits && (!(counts & AT(position)) || words[position] <= INT_MAX);
    return fits ? library_function(id, C_FORM) : NULL;
}

static void complain_missing(const char *name) {
    preload_complain("%s, which the program calls, was not found in the MPI library", name);
}

static int missing(enum call_id id, enum form form) {
    char name[64];
    if (form == FORTRAN_FORM)
        snprintf(name, sizeof name, "mpi_%s_", calls[id].fortran);
    else
        snprintf(name, sizeof name, "MPI_%s%s", calls[id].name, form == LARGE_FORM ? "_c" : "");
    complain_missing(name);
    return 1;
}

HOT int made(enum call_id id, enum form form, uint64_t *words) {
    any_function function = library_function(id, form);
    if (function == NULL && form == LARGE_FORM)
        function = plain_form(id, words);
    struct arguments arguments = {form, words};
    if (function == NULL)
        return missing(id, form);
    if (counting && !inside)
        return counted(function, id, &arguments);
    return invoke(function, calls[id].arguments + (form == FORTRAN_FORM), words);
}

#define W(n) uint64_t a##n
#define P1 W(0)
#define P2 P1, W(1)
#define P3 P2, W(2)
#define P4 P3, W(3)
#define P5 P4, W(4)
#define P6 P5, W(5)
#define P7 P6, W(6)
#define P8 P7, W(7)
#define P9 P8, W(8)
#define P10 P9, W(9)
#define P11 P10, W(10)
#define P12 P11, W(11)
#define P13 P12, W(12)
#define V1 a0
#define V2 V1, a1
#define V3 V2, a2
#define V4 V3, a3
#define V5 V4, a4
#define V6 V5, a5
#define V7 V6, a6
#define V8 V7, a7
#define V9 V8, a8
#define V10 V9, a9
#define V11 V10, a10
#define V12 V11, a11
#define V13 V12, a12

#define C_ENTRY(Name, name, n, ...)                                                                          \
    EXPORT int MPI_##Name(P##n);                                                                             \
    int MPI_##Name(P##n) {                                                                                   \
        return made(CALL_##Name, C_FORM, (uint64_t[]){V##n});                                                \
    }
#define LARGE_ENTRY(Name, name, n, ...)                                                                      \
    EXPORT int MPI_##Name##_c(P##n);                                                                         \
    int MPI_##Name##_c(P##n) {                                                                               \
        return made(CALL_##Name, LARGE_FORM, (uint64_t[]){V##n});                                            \
    }
#define FORTRAN_ENTRY(Name, name, n, ...)                                                                    \
    EXPORT void mpi_##name##_(P##n, uint64_t fault);                                                         \
    void mpi_##name##_(P##n, uint64_t fault) {                                                               \
        made(CALL_##Name, FORTRAN_FORM, (uint64_t[]){V##n, fault});                                          \
    }
COUNTED_CALLS(C_ENTRY)
COUNTED_CALLS(LARGE_ENTRY)
COUNTED_CALLS(FORTRAN_ENTRY)
PLAIN_CALLS(C_ENTRY)
PLAIN_CALLS(FORTRAN_ENTRY)

static int nothing(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    return 0;
}

static void read_clock(void) {
    (void)ticks_now();
    (void)ticks_now();
}

/* The same path as a call of the program, but with an empty function behind it. */
static void count_send(void) {
    static int (*volatile entry)(P6) = MPI_Send;
    entry(0, 8, abi.byte, 0, 0, abi.world);
}

/* Time of one call of `work`: the least of some rounds, because others may have been disturbed. */
static long long picoseconds_of(void (*work)(void)) {
    long long least = LLONG_MAX;
    struct timespec begin, end;
    for (int round = 0; round < COST_ROUNDS; round++) {
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int call = 0; call < COST_CALLS; call++)
            work();
        clock_gettime(CLOCK_MONOTONIC, &end);
        long long took = nanoseconds_between(&begin, &end);
        least = took < least ? took : least;
    }
    return least * 1000 / COST_CALLS;
}

/* On a communicator of one rank in place of MPI_COMM_WORLD, which a program with sessions has not. */
static void measure_cost(void) {
    static const int self = 0;
    communicators[1] =
        (struct communicator){.key = abi.world, .known = true, .live = true, .size = 1, .world = &self};
    clock_ps = picoseconds_of(read_clock);
    library_replace(CALL_Send, (any_function)nothing);
    counting = true;
    cost_ps = picoseconds_of(count_send);
    counting = false;
    library_replace(CALL_Send, NULL);
    totals_clear(cell_of(1, CALL_Send, 8), 0);
    communicators[1] = (struct communicator){0};
}

/* Safe in a signal handler: nothing is allocated. */
static int write_document(int fd) {
    static struct json out;
    bool last = !counting;
    struct timespec now;
    uint64_t end_ticks = ticks_now();
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long ns = nanoseconds_between(&began, &now);
    double ns_per_tick = end_ticks > began_ticks ? (double)ns / (double)(end_ticks - began_ticks) : 1.0;
    long long off_ns =
        (long long)((double)(off_ticks + (is_off() ? end_ticks - off_at : 0)) * ns_per_tick + 0.5);
    json_start(&out, fd);
    json_open(&out, NULL, '{');
    json_int(&out, "schema", 1);
    json_text(&out, "host", preload.host.nodename);
    json_int(&out, "pid", preload.owner);
    json_int(&out, "rank", rank);
    json_int(&out, "size", ranks);
    json_text(&out, "program", preload.program);
    json_text(&out, "ended", ended);
    json_int(&out, "wall_ns", ns > off_ns ? ns - off_ns : 0);
    if (off_ns > 0)
        json_int(&out, "off_ns", off_ns);
    json_int(&out, "cost_ps", cost_ps);
    json_int(&out, "clock_ps", clock_ps);
    json_text(&out, "clock", by_clock ? "clock_gettime" : "counter");
    json_int(&out, "thread_level", thread_level);
    json_bool(&out, "multiple", threads_meet);
    json_int(&out, "threads", atomic_load(&threads));
    json_bool(&out, "waiting_split", splits_waiting);
    totals_write(&out, ns_per_tick);
    json_close(&out, '}');
    int fault = json_finish(&out);
    return last == counting ? ECANCELED : fault; /* a signal's handler has written the last one meanwhile */
}

/* Write the last document; only the first call does it. */
static void write_file(const char *how) {
    static char path[PRELOAD_PATH_BYTES], partial[PRELOAD_PATH_BYTES], temporary[PRELOAD_PATH_BYTES];
    if (!counting || !preload_is_mine() || atomic_flag_test_and_set(&written))
        return;
    counting = false;
    ended = how;
    bool whole = strcmp(ended, "MPI_Finalize") == 0;
    preload_name(partial, ".partial.json");
    preload_name(path, whole ? ".json" : ".partial.json");
    preload_name(temporary, whole ? ".json.part" : ".partial.json.part");
    if (preload_write(path, temporary, write_document) && whole)
        unlink(partial);
}

/* Write what was counted so far, in case the process is killed: launchers may end a whole job by SIGKILL when
 * one rank died. Of a run of length t, less than about t / KEEP_PART is lost. At most 1 / KEEP_COST of the
 * time is spent on writing. */
static __attribute__((noinline)) void keep(uint64_t now) {
    static char path[PRELOAD_PATH_BYTES], temporary[PRELOAD_PATH_BYTES];
    keep_at = UINT64_MAX;
    if (!preload_is_mine())
        return;
    preload_name(path, ".partial.json");
    preload_name(temporary, ".partial.json.kept");
    if (!preload_write(path, temporary, write_document))
        return;
    uint64_t end = ticks_now(), part = (end - began_ticks) / KEEP_PART, paid = (end - now) * KEEP_COST;
    keep_at = end + (part > paid ? part : paid);
}

/* The handler that was installed before this one runs afterwards. */
static void write_and_end(int number) {
    write_file("SIGTERM");
    sigaction(SIGTERM, &before_us, NULL);
    raise(number);
}

/* MPI was initialised, or a `session` made; a program with sessions alone may make one again when it had
 * none. */
static void start(const void *session) {
    const char *folder = getenv("PLUMB_PROFILE_DIR");
    has_world = has_world || session == NULL;
    if (began_ticks != 0 && !counting && preload_is_mine() && communicators_world(session) != 0) {
        counting = true;
        atomic_flag_clear(&written);
    }
    if (began_ticks != 0 || folder == NULL || folder[0] != '/' || !preload_start(folder))
        return;
    uint64_t world = library_find() ? communicators_world(session) : 0;
    if (world == 0) {
        preload_complain(
            "no profile: this MPI library is not known, or lacks a function that it is asked for");
        return;
    }
    by_clock = !counter_is_steady();
    const char *split = getenv("PLUMB_PROFILE_WAIT");
    splits_waiting = split != NULL && split[0] == '1';
    ask(asked.Group_rank, world, WORD(&rank), 0, 0, 0);
    ask(asked.Group_size, world, WORD(&ranks), 0, 0, 0);
    thread_level = abi.multiple; /* what a session was given is not asked */
    if (has_world)
        ask(asked.Query_thread, WORD(&thread_level), 0, 0, 0, 0);
    threads_meet = thread_level == abi.multiple;
    if (!totals_start(ranks) || !communicators_start()) {
        preload_complain("no profile: no memory");
        return;
    }
    struct timespec before;
    clock_gettime(CLOCK_MONOTONIC, &before);
    uint64_t before_ticks = ticks_now();
    measure_cost();
    if (has_world)
        communicator_find(abi.world, false);
    struct sigaction action = {.sa_handler = write_and_end, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    /* past the witness, which hides its handler */
    any_function real = next_function("sigaction");
    ((int (*)(int, const struct sigaction *, struct sigaction *))real)(SIGTERM, NULL, &before_us);
    if (before_us.sa_handler != SIG_IGN)
        sigaction(SIGTERM, &action, NULL);
    clock_gettime(CLOCK_MONOTONIC, &began);
    began_ticks = ticks_now();
    keep_at = began_ticks + (uint64_t)(KEEP_FIRST_NS * (double)(began_ticks - before_ticks) /
                                       (double)nanoseconds_between(&before, &began));
    counting = true;
}

static any_function behind(const char *name) {
    any_function function = next_function(name);
    if (function == NULL)
        complain_missing(name + 1); /* without the P */
    return function;
}

EXPORT int MPI_Init(int *count, char ***words);
int MPI_Init(int *count, char ***words) {
    any_function function = behind("PMPI_Init");
    int fault = function == NULL ? 1 : ask(function, WORD(count), WORD(words), 0, 0, 0);
    if (fault == 0)
        start(NULL);
    return fault;
}

EXPORT int MPI_Init_thread(int *count, char ***words, int required, int *provided);
int MPI_Init_thread(int *count, char ***words, int required, int *provided) {
    any_function function = behind("PMPI_Init_thread");
    int fault =
        function == NULL ? 1 : ask(function, WORD(count), WORD(words), (uint64_t)required, WORD(provided), 0);
    if (fault == 0)
        start(NULL);
    return fault;
}

EXPORT int MPI_Finalize(void);
int MPI_Finalize(void) {
    write_file("MPI_Finalize");
    any_function function = behind("PMPI_Finalize");
    return function == NULL ? 1 : ask(function, 0, 0, 0, 0, 0);
}

EXPORT int MPI_Session_init(uint64_t info, uint64_t handler, void *session);
int MPI_Session_init(uint64_t info, uint64_t handler, void *session) {
    any_function function = behind("PMPI_Session_init");
    int fault = function == NULL ? 1 : ask(function, info, handler, WORD(session), 0, 0);
    if (fault == 0 && atomic_fetch_add(&sessions, 1) == 0 && !has_world)
        start(session);
    return fault;
}

EXPORT int MPI_Session_finalize(void *session);
int MPI_Session_finalize(void *session) {
    any_function function = behind("PMPI_Session_finalize");
    if (atomic_fetch_sub(&sessions, 1) == 1 && !has_world) {
        write_file("MPI_Finalize");
        communicators_leave();
    }
    return function == NULL ? 1 : ask(function, WORD(session), 0, 0, 0, 0);
}

/* Level 0 switches the profile off, 1 on, 2 writes what there is; the others are those of other profilers. */
static void control(int level) {
    if (!counting)
        return;
    lock();
    uint64_t now = ticks_now();
    if (level == 2) {
        keep(now);
    } else if (level == 0 && !is_off()) {
        off_at = now;
        switches++;
    } else if (level == 1 && is_off()) {
        off_ticks += now - off_at;
        switches++;
    }
    unlock();
}

EXPORT int MPI_Pcontrol(const int level, ...);
int MPI_Pcontrol(const int level, ...) {
    control(level);
    return 0;
}

EXPORT void mpi_pcontrol_(const int *level);
void mpi_pcontrol_(const int *level) {
    control(*level);
}

EXPORT int MPI_Abort(uint64_t comm, int status);
int MPI_Abort(uint64_t comm, int status) {
    write_file("MPI_Abort");
    any_function function = behind("PMPI_Abort");
    return function == NULL ? 1 : ask(function, comm, (uint64_t)status, 0, 0, 0);
}

/* Fortran's own library may not call the C functions. */
EXPORT void mpi_init_(int *fault);
void mpi_init_(int *fault) {
    any_function function = behind("pmpi_init_");
    if (function == NULL) {
        *fault = 1;
        return;
    }
    ask(function, WORD(fault), 0, 0, 0, 0);
    if (*fault == 0)
        start(NULL);
}

EXPORT void mpi_init_thread_(int *required, int *provided, int *fault);
void mpi_init_thread_(int *required, int *provided, int *fault) {
    any_function function = behind("pmpi_init_thread_");
    if (function == NULL) {
        *fault = 1;
        return;
    }
    ask(function, WORD(required), WORD(provided), WORD(fault), 0, 0);
    if (*fault == 0)
        start(NULL);
}

EXPORT void mpi_finalize_(int *fault);
void mpi_finalize_(int *fault) {
    write_file("MPI_Finalize");
    any_function function = behind("pmpi_finalize_");
    *fault = 1;
    if (function != NULL)
        ask(function, WORD(fault), 0, 0, 0, 0);
}

EXPORT void mpi_abort_(int *comm, int *status, int *fault);
void mpi_abort_(int *comm, int *status, int *fault) {
    write_file("MPI_Abort");
    any_function function = behind("pmpi_abort_");
    *fault = 1;
    if (function != NULL)
        ask(function, WORD(comm), WORD(status), WORD(fault), 0, 0);
}

static __attribute__((destructor)) void finish(void) {
    write_file("exit");
}
