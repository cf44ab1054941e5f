/* libplumbwitness.so: what a measured process did, written to a file at its exit. Every process of a rank
 * writes one: that of the benchmark, those that it starts and those that started it.
 *
 * The library runs inside programs that were not adapted to it, so every module keeps to three rules: no
 * malloc (the program's allocator may be half torn down, and free() is hooked), no stdio streams, no thread
 * of its own. */
#ifndef PLUMB_WITNESS_H
#define PLUMB_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "json.h"
#include "next_function.h"
#include "preload.h"
#include "procfile.h"

/* Blocks and mappings with less present memory than this are not counted: stacks, small heaps, library data.
 */
#define WITNESS_THRESHOLD_BYTES ((size_t)1 << 20)

/* The kernel's own maximum is 1024 nodes (MAX_NUMNODES). */
#define WITNESS_MAX_NODES 1024

/* pages.c: on which nodes the pages of an address range lie. */

typedef void (*page_counter)(int node, long pages);

/* Hands the estimated pages per node of [start, start + length) to `add`, asking the kernel about at most
 * `samples` evenly spaced pages. Returns the pages counted, or -1 with errno. */
long pages_sample(uintptr_t start, size_t length, size_t samples, page_counter add);
size_t page_bytes(void);

/* freed.c: large blocks given back before the exit. */

void freed_start(void);
void freed_stop(void);
/* In a forked child: clears the counts, which are the parent's. */
void freed_forget(void);
/* True between freed_start and freed_stop: a quick test for the hooks. */
bool freed_watching(void);
/* [start, start + length) is anonymous memory about to be released. */
void freed_block(uintptr_t start, size_t length);
/* A mapping made (anonymous, large) or about to go; keeps the table that tells anonymous from file-backed. */
void freed_mapped(uintptr_t start, size_t length);
bool freed_tracks(uintptr_t address);
void freed_unmapping(uintptr_t start, size_t length, bool released);
void freed_write(struct json *out);
/* NULL, or why some freed block could not be counted. */
const char *freed_unavailable(void);

/* witness.c */

/* Writes the document of a process that ends by _exit, unless that is in the midst of MPI or an error. */
void witness_exit(int status);

/* hooks.c */

/* Looks up the real functions now, while the process still has one thread. False: freed blocks cannot be
 * counted. */
bool hooks_resolve(void);
/* From now on threads are recorded when they end. */
void hooks_watch_threads(void);

/* own_library.c */

/* The MPI library's function; NULL, after a line on stderr, where none is loaded. */
any_function library_function(const char *name);
/* Did this process call MPI_Init or MPI_Session_init? Of the first, the library itself is asked
 * (MPI_Initialized), which knows it for every language and however it was loaded; false without one. */
bool library_initialised(void);
/* Between MPI_Init and MPI_Finalize, or in a session. */
bool library_running(void);
/* Asks for the number of ranks in MPI_COMM_WORLD, between MPI_Init and MPI_Finalize. */
void library_note(void);
/* `session` was made, or one is about to be finalised. True: MPI begins, or ends, with it. */
bool library_opened(const void *session);
bool library_closes(void);
/* In a forked child: forgets the number, which is the parent's. */
void library_forget(void);
void library_write(struct json *out, bool forked);

/* scheduling.c */

struct scheduling {
    int policy; /* SCHED_OTHER and so on; -1: not known */
    int nice;
};
struct scheduling scheduling_of(pid_t tid);
void scheduling_start(void);
void scheduling_write(struct json *out, struct scheduling scheduling);
void scheduling_write_start(struct json *out);
void scheduling_write_end(struct json *out);

/* calls.c */

/* What a call that waits for one other rank was given; ranks are those of its communicator. */
struct call {
    const char *function;
    struct peer {
        int given, rank, tag;
    } to, from;
};
/* The last such call of this thread, if it was one of `function`; NULL otherwise. */
const struct call *calls_last(const char *function);

/* clock.c */

#define CLOCKS 7
/* What the kernel's monotonic clock and the program's clocks said at one moment; microseconds. */
struct clocks {
    long long before, after;
    long long program[CLOCKS];
};
long long kernel_microseconds(clockid_t clock);
/* Looks up OpenMP's clock and, once MPI is initialised (`mpi`), that of MPI. */
void clocks_find(bool mpi);
void clocks_read(struct clocks *clocks);
/* By how much the worst of the program's clocks passed less (below 0) or more time than the kernel's. */
long long clocks_error(const struct clocks *begin, const struct clocks *end, const char **name);

/* mapped_memory.c, usage.c, rank.c, objects.c: one key of the document each. */

void memory_write(struct json *out);
/* Microseconds: of the monotonic clock, and of CPU time of this process. */
long long wall_microseconds(void);
long long cpu_microseconds(void);
struct rusage;
long long cpu_time(const struct rusage *usage);
/* Of one thread of this process; 0: the calling one. */
long long cpu_of_thread(pid_t tid);
/* The calling thread is about to end: the same of it, which is kept. */
long long usage_thread_ended(void);
/* `of_root`: of the process that the binder became. */
void usage_start(bool of_root);
void usage_write(struct json *out);
void rank_start(void);
void rank_write(struct json *out);
/* -1: no launcher reported it. */
long rank_number(void);
/* True also if no launcher reported a local rank. */
bool rank_is_first_of_host(void);
/* The program and the libraries that are loaded now. */
void objects_write(struct json *out, const char *program);

/* excursions.c: threads that left the CPUs of their rank for a time */

/* CPU time in microseconds and migrations; `until`: when the last excursion ended, in the window. */
struct away {
    long long cpu;
    long migrations;
    long long until;
};
struct departure {
    pid_t tid;
    bool outside;
    struct away at;
};
/* Around a call that binds a thread (0: the calling one) to `cpus`. */
struct departure excursions_before(pid_t tid, const void *cpus, size_t size);
void excursions_after(struct departure before);
/* All excursions of a thread; with `ends`, nobody asks for it again. */
struct away excursions_of(pid_t tid, bool ends);
void excursions_count_from_here(pid_t tid);
/* In a forked child: forgets those of the parent. */
void excursions_forget(void);

/* threads.c */

/* `plan`: the text that names the CPUs of the rank; without them those that the process began on are its own.
 */
void threads_start(const char *plan);
/* How often the kernel moved a thread; -1: it does not tell. */
long threads_migrations(pid_t tid);
/* Whether a thread may run, or `cpus` are in part, outside the CPUs of the rank. */
bool threads_is_outside(pid_t tid);
bool threads_leaves(const void *cpus, size_t size);
void threads_write_start(struct json *out);
/* Remembers the threads of this moment: MPI libraries end their helper threads in MPI_Finalize. */
void threads_remember(void);
/* In a forked child: forgets the threads that were remembered, which are the parent's. */
void threads_forget(void);
/* The calling thread begins, and is about to end. */
void threads_begin(void);
void threads_end(void);
/* Counts the migrations of the first thread from now on: MPI libraries move it while they examine the
 * machine. */
void threads_count_from_here(void);
void threads_write(struct json *out);

/* device_choice.c */

/* Reads the variables that choose GPUs. */
void devices_start(void);
/* Asks the CUDA driver which GPU the calling thread computes on. */
void devices_note(void);
void devices_write(struct json *out);

/* settings.c */

/* Asks the MPI library for the settings that PLUMB_WITNESS_SETTINGS names; MPI is initialised. */
void settings_read(void);
void settings_write(struct json *out);

/* window.c: the time in which figures are made. Each window_begin forgets the one before. */

void window_begin(void);
/* Only the first call after each window_begin counts. */
void window_end(void);
void window_write(struct json *out);
/* Microseconds since the window began; 0 before it. */
long long window_passed(void);
/* Microseconds that a thread of this process has waited for a CPU. */
long long window_waited(pid_t tid);

/* transports.c: one key of the document */

/* Records what is open now; only the first call does it. */
void transports_note(void);
/* The process copied from or to the memory of another one. */
void transports_copied(ssize_t bytes);
/* In a forked child: forgets what was recorded and counted, which is the parent's. */
void transports_forget(void);
void transports_write(struct json *out);

/* waiting.c */

/* The signal that asks a process where it waits: a real-time one, which programs and MPI libraries leave
 * alone (plumbline/launch/waiting.py sends it). */
#define WITNESS_ASK (SIGRTMIN + 12)
/* From now on this process, but none that it forks, answers WITNESS_ASK and SIGTERM in
 * DIRECTORY/HOST.PID.waiting. */
void waiting_start(void);
struct sigaction;
/* Is this how it answers? */
bool waiting_answers(const struct sigaction *action);

#endif
