/* Stands between a program and perf_event_open: the counters that it asks for become the kernel's own in
 * software, which every host has. Instructions become nanoseconds of CPU time, cycles page faults, cache
 * misses moves to another CPU. FAKE_COUNTERS refuses them with the error of that number. The other system
 * calls pass. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...) {
    long a[6];
    va_list given;
    va_start(given, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(given, long);
    va_end(given);
    if (number == SYS_perf_event_open) {
        struct perf_event_attr *wanted = (struct perf_event_attr *)a[0];
        if (getenv("FAKE_COUNTERS")) {
            errno = atoi(getenv("FAKE_COUNTERS"));
            return -1;
        }
        if (!wanted->inherit || !wanted->disabled || !wanted->exclude_kernel) {
            errno = EINVAL; /* these would miss threads, count what is not timed, or be refused to a user */
            return -1;
        }
        if (wanted->type == PERF_TYPE_HARDWARE)
            wanted->config = wanted->config == PERF_COUNT_HW_INSTRUCTIONS ? PERF_COUNT_SW_TASK_CLOCK
                             : wanted->config == PERF_COUNT_HW_CPU_CYCLES ? PERF_COUNT_SW_PAGE_FAULTS
                                                                          : PERF_COUNT_SW_CPU_MIGRATIONS;
        wanted->type = PERF_TYPE_SOFTWARE;
    }
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
