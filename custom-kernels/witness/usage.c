#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "witness.h"

/* The kernel's counters survive exec. `before_s` is what a wrapper used before its exec, without the CPU time
 * that the binder reports for itself (seconds on an emulated machine). Everything else counts from the
 * constructor on, except `children_s`, which counts from the start of the process: it is compared with what
 * the children report. */
static struct rusage start_usage;
static long long start_microseconds;
static long long binder_microseconds;
static long long unlisted_before;       /* microseconds of CPU time that no thread had then */
static atomic_llong ended_microseconds; /* those of the threads that ended since */

static long long elapsed(struct timeval end, struct timeval start) {
    return (end.tv_sec - start.tv_sec) * 1000000LL + (end.tv_usec - start.tv_usec);
}

long long cpu_time(const struct rusage *usage) {
    const struct timeval zero = {0, 0};
    return elapsed(usage->ru_utime, zero) + elapsed(usage->ru_stime, zero);
}

long long cpu_microseconds(void) {
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_SELF, &usage);
    return cpu_time(&usage);
}

long long wall_microseconds(void) {
    return kernel_microseconds(CLOCK_MONOTONIC);
}

/* By the clock that pthread_getcpuclockid(3) makes of the thread's number. */
long long cpu_of_thread(pid_t tid) {
    return kernel_microseconds(tid == 0 ? CLOCK_THREAD_CPUTIME_ID : (clockid_t)(~(unsigned)tid << 3 | 6U));
}

long long usage_thread_ended(void) {
    long long cpu = cpu_of_thread(0);
    atomic_fetch_add(&ended_microseconds, cpu);
    return cpu;
}

static void add_thread(const char *tid, void *sum) {
    *(long long *)sum += cpu_of_thread((pid_t)atoi(tid));
}

/* The clock of the process has that of its ended threads, too. It is read before those of the threads: what
 * they do meanwhile must not count. */
static long long cpu_of_no_thread(void) {
    long long whole = kernel_microseconds(CLOCK_PROCESS_CPUTIME_ID);
    long long sum = atomic_load(&ended_microseconds);
    threads_visit(add_thread, &sum);
    return whole - sum;
}

void usage_start(bool of_root) {
    getrusage(RUSAGE_SELF, &start_usage);
    start_microseconds = wall_microseconds();
    atomic_store(&ended_microseconds, 0);
    /* below 0 is what the threads did between the readings of both clocks: it must not count at the end */
    long long before = cpu_of_no_thread();
    unlisted_before = before > 0 ? before : 0;
    const char *binder = of_root ? getenv("PLUMB_BINDER_CPU_US") : NULL;
    binder_microseconds = binder != NULL ? strtoll(binder, NULL, 10) : 0;
}

void usage_write(struct json *out) {
    struct rusage end, children;
    memset(&end, 0, sizeof end);
    memset(&children, 0, sizeof children);
    getrusage(RUSAGE_SELF, &end);
    getrusage(RUSAGE_CHILDREN, &children);
    long long unlisted = cpu_of_no_thread() - unlisted_before;
    json_open(out, "usage", '{');
    json_seconds(out, "wall_s", wall_microseconds() - start_microseconds);
    json_seconds(out, "user_s", elapsed(end.ru_utime, start_usage.ru_utime));
    json_seconds(out, "system_s", elapsed(end.ru_stime, start_usage.ru_stime));
    json_seconds(out, "before_s", cpu_time(&start_usage) - binder_microseconds);
    json_seconds(out, "children_s", cpu_time(&children));
    json_seconds(out, "unlisted_s", unlisted > 0 ? unlisted : 0);
    json_int(out, "voluntary_switches", end.ru_nvcsw - start_usage.ru_nvcsw);
    json_int(out, "involuntary_switches", end.ru_nivcsw - start_usage.ru_nivcsw);
    json_int(out, "minor_faults", end.ru_minflt - start_usage.ru_minflt);
    json_int(out, "major_faults", end.ru_majflt - start_usage.ru_majflt);
    json_close(out, '}');
}
