/* The window in which figures are made: from the return of MPI_Init to the call of MPI_Finalize, or the whole
 * run of a program without MPI. What a launcher does to start and end its ranks lies outside.
 *
 * In the window: the CPU time of this process, the longest time that one of its busy threads waited for a
 * CPU, how long the thread that was idle least did neither, how often the thread that calls MPI_Finalize
 * slept, and, reported by the first rank of each host, what every CPU of the host did (proc_stat(5)) and how
 * long tasks waited for memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procfile.h"
#include "witness.h"

#define MOST_CPUS 4096    /* those beyond are ignored */
#define MOST_THREADS 1024 /* threads at the beginning of the window; of later ones all time counts */
#define NEVER (-1LL)      /* a CPU that is off, a file that is not there */

struct host {
    long long busy[MOST_CPUS]; /* ticks in processes: user, nice and system time */
    long long steal[MOST_CPUS];
    long long memory_stall; /* microseconds */
};

struct moment {
    struct clocks clocks;
    long long wall; /* microseconds, as all times here */
    long long cpu;
    struct {
        pid_t tid;
        long long cpu, queue, sleeps; /* queue: time in the queue of a CPU, NEVER without schedstat */
    } thread;                         /* the calling one */
    struct host host;
};

static struct moment begin, end;
static struct before {
    long tid;
    long long running; /* nanoseconds, as all of threads */
    long long waiting;
} before[MOST_THREADS];
static size_t threads_before;
static long long longest_delay;
static long long busiest; /* nanoseconds that a thread ran or waited for a CPU */
static bool ended;

/* "cpu3 user nice system idle iowait irq softirq steal ...". Interrupts are not counted as busy: what they
 * serve is mostly the ranks' own traffic. */
static void note_cpu(const char *line, struct host *host) {
    long long ticks[8] = {0};
    char *at;
    long cpu = strtol(line + 3, &at, 10);
    for (int i = 0; i < 8; i++)
        ticks[i] = strtoll(at, &at, 10);
    if (cpu >= 0 && cpu < MOST_CPUS) {
        host->busy[cpu] = ticks[0] + ticks[1] + ticks[2];
        host->steal[cpu] = ticks[7];
    }
}

static void read_cpus(struct host *host) {
    static struct line_reader reader;
    if (!lines_open(&reader, "/proc/stat"))
        return;
    const char *line;
    while ((line = lines_next(&reader)) != NULL && strncmp(line, "cpu", 3) == 0)
        if (line[3] != ' ')
            note_cpu(line, host);
    lines_close(&reader);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
static long long read_memory_stall(void) {
    char text[128];
    const char *total = read_text("/proc/pressure/memory", text, sizeof text) ? strstr(text, "total=") : NULL;
    return total == NULL ? NEVER : strtoll(total + strlen("total="), NULL, 10);
}

/* The CPU time of a thread and its time in the queue of a CPU, in nanoseconds (schedstat: "running waiting
 * slices"); zeros on a kernel that does not count them. */
static void read_schedstat(const char *tid, long long *running, long long *waiting) {
    char path[64];
    char text[128];
    char *at = text;
    snprintf(path, sizeof path, "/proc/self/task/%.16s/schedstat", tid);
    *running = *waiting = 0;
    if (!read_text(path, text, sizeof text))
        return;
    *running = strtoll(at, &at, 10);
    *waiting = strtoll(at, &at, 10);
}

long long window_waited(pid_t tid) {
    long long running, waiting;
    char text[24];
    snprintf(text, sizeof text, "%ld", (long)tid);
    read_schedstat(text, &running, &waiting);
    return waiting / 1000;
}

long long window_passed(void) {
    long long passed = wall_microseconds() - begin.wall;
    return passed > 0 ? passed : 0;
}

static void look_at_caller(struct moment *moment) {
    struct rusage usage = {0};
    long long running;
    char tid[24];
    moment->thread.tid = (pid_t)syscall(SYS_gettid);
    snprintf(tid, sizeof tid, "%ld", (long)moment->thread.tid);
    getrusage(RUSAGE_THREAD, &usage);
    moment->thread.sleeps = usage.ru_nvcsw;
    read_schedstat(tid, &running, &moment->thread.queue);
    moment->thread.cpu = cpu_of_thread(0);
    if (running == 0)
        moment->thread.queue = NEVER;
}

static void look(struct moment *moment) {
    if (rank_is_first_of_host()) {
        for (size_t cpu = 0; cpu < MOST_CPUS; cpu++)
            moment->host.busy[cpu] = NEVER;
        read_cpus(&moment->host);
        moment->host.memory_stall = read_memory_stall();
    }
    look_at_caller(moment);
    moment->cpu = cpu_microseconds();
    clocks_read(&moment->clocks);
    moment->wall = moment->clocks.before;
}

/* The threads that were there when the window began, and what they had run and waited until then. */
static void note_before(const char *tid, void *context) {
    (void)context;
    if (threads_before == MOST_THREADS)
        return;
    struct before *thread = &before[threads_before++];
    thread->tid = atol(tid);
    read_schedstat(tid, &thread->running, &thread->waiting);
}

/* A thread that wanted a CPU for less than half of the window is a helper of a library: it waits behind the
 * worker on its own CPU, and that disturbs nobody. */
static void note_during(const char *tid, void *context) {
    const long long *half = context;
    long long running;
    long long waiting;
    read_schedstat(tid, &running, &waiting);
    for (size_t i = 0; i < threads_before; i++) {
        if (before[i].tid == atol(tid)) {
            running -= before[i].running;
            waiting -= before[i].waiting;
        }
    }
    if (running + waiting > busiest)
        busiest = running + waiting;
    if (running + waiting >= *half && waiting > longest_delay)
        longest_delay = waiting;
}

void window_begin(void) {
    int saved = errno;
    ended = false;
    threads_before = 0;
    longest_delay = 0;
    busiest = 0;
    threads_visit(note_before, NULL);
    look(&begin);
    errno = saved;
}

void window_end(void) {
    int saved = errno;
    if (!ended) {
        ended = true;
        look(&end);
        long long half = (end.wall - begin.wall) * 1000 / 2;
        threads_visit(note_during, &half);
    }
    errno = saved;
}

static void write_cpus(struct json *out, const char *key, const long long *from, const long long *to) {
    const long long tick = 1000000 / sysconf(_SC_CLK_TCK);
    json_open(out, key, '{');
    for (unsigned cpu = 0; cpu < MOST_CPUS; cpu++)
        if (begin.host.busy[cpu] != NEVER && end.host.busy[cpu] != NEVER) {
            char name[16];
            snprintf(name, sizeof name, "%u", cpu);
            json_seconds(out, name, (to[cpu] - from[cpu]) * tick);
        }
    json_close(out, '}');
}

static void write_host(struct json *out) {
    json_open(out, "host", '{');
    write_cpus(out, "busy_s", begin.host.busy, end.host.busy);
    write_cpus(out, "steal_s", begin.host.steal, end.host.steal);
    if (begin.host.memory_stall != NEVER && end.host.memory_stall != NEVER)
        json_seconds(out, "memory_stall_s", end.host.memory_stall - begin.host.memory_stall);
    json_close(out, '}');
}

/* Neither running nor waiting for a CPU: sleeping or stopped, which the thread itself cannot tell apart.
 * While it sleeps and another one runs, the process was not stopped: so a team of OpenMP waits for its
 * slowest. */
static void write_idle(struct json *out) {
    if (begin.thread.tid != end.thread.tid || begin.thread.queue == NEVER)
        return;
    long long busy = end.thread.cpu - begin.thread.cpu + (end.thread.queue - begin.thread.queue) / 1000;
    if (busiest / 1000 > busy)
        busy = busiest / 1000;
    long long idle = end.wall - begin.wall - busy;
    json_seconds(out, "idle_s", idle > 0 ? idle : 0);
    json_int(out, "sleeps", end.thread.sleeps - begin.thread.sleeps);
}

void window_write(struct json *out) {
    json_open(out, "window", '{');
    write_idle(out);
    json_seconds(out, "begin_s", begin.wall);
    json_seconds(out, "wall_s", end.wall - begin.wall);
    json_seconds(out, "cpu_s", end.cpu - begin.cpu);
    json_seconds(out, "delay_s", longest_delay / 1000);
    const char *clock;
    json_seconds(out, "clock_s", end.wall - begin.wall + clocks_error(&begin.clocks, &end.clocks, &clock));
    json_text(out, "clock", clock);
    if (rank_is_first_of_host())
        write_host(out);
    json_close(out, '}');
}
