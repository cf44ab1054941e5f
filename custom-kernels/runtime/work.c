#include "work.h"

#include <mpi.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t events[COUNTERS] = {
    [INSTRUCTIONS] = PERF_COUNT_HW_INSTRUCTIONS,
    [CYCLES] = PERF_COUNT_HW_CPU_CYCLES,
    [CACHE_MISSES] = PERF_COUNT_HW_CACHE_MISSES,
};

/* `refused` is the error of the first counter that could not be opened or read, 0 if all can. */
static struct {
    double flop, bytes;
    int file[COUNTERS], refused;
} self;

void work_open(void) {
    for (int counter = 0; counter < COUNTERS && !self.refused; counter++) {
        struct perf_event_attr wanted = {
            .type = PERF_TYPE_HARDWARE,
            .size = sizeof wanted,
            .config = events[counter],
            .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
            .disabled = 1,
            .inherit = 1,
            .exclude_kernel = 1,
            .exclude_hv = 1,
        };
        self.file[counter] = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (self.file[counter] < 0)
            self.refused = errno;
    }
}

static void switch_counters(unsigned long request) {
    for (int counter = 0; counter < COUNTERS && !self.refused; counter++)
        if (ioctl(self.file[counter], request, 0) != 0)
            self.refused = errno;
}

void work_begin(void) {
    switch_counters(PERF_EVENT_IOC_ENABLE);
}

void work_end(double flop, double bytes) {
    switch_counters(PERF_EVENT_IOC_DISABLE);
    self.flop += flop;
    self.bytes += bytes;
}

/* A counter that shared the hardware with others ran only a part of the time: its count would be an
 * estimate. */
static double read_counter(enum counter counter) {
    struct {
        uint64_t value, enabled, running;
    } seen = {0};
    if (self.refused)
        return 0.0;
    if (read(self.file[counter], &seen, sizeof seen) != (ssize_t)sizeof seen)
        self.refused = errno ? errno : EIO;
    else if (seen.running < seen.enabled)
        self.refused = EBUSY;
    return (double)seen.value;
}

/* The reason for the error `refused`. Where ranks have different errors, it is that of one of them. */
static void say_why(int refused, char *text, size_t room) {
    int paranoid = -1;
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
    if (file) {
        if (fscanf(file, "%d", &paranoid) != 1)
            paranoid = -1;
        fclose(file);
    }
    if (refused == ENOENT || refused == ENODEV || refused == EOPNOTSUPP)
        snprintf(text, room, "the host shows no hardware counters, as is usual in virtual machines");
    else if (refused == EBUSY)
        snprintf(text, room, "other programs use the hardware counters");
    else if ((refused == EACCES || refused == EPERM) && paranoid > 2)
        snprintf(text, room, "kernel.perf_event_paranoid is %d; 2 is enough", paranoid);
    else
        snprintf(text, room, "perf_event_open: %s", strerror(refused));
}

/* Bytes that a counted miss moves from memory. Linux counts misses of an inner cache by this name on other
 * processors than Intel's. */
static long bytes_missed(void) {
#ifdef __x86_64__
    long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
    return __builtin_cpu_is("intel") && line > 0 ? line : 0;
#else
    return 0;
#endif
}

struct work work_collect(void) {
    struct work all = {.line_bytes = bytes_missed()};
    double sums[2 + COUNTERS] = {self.flop, self.bytes};
    for (int counter = 0; counter < COUNTERS; counter++)
        sums[2 + counter] = read_counter((enum counter)counter);
    int refused = self.refused;
    MPI_Allreduce(MPI_IN_PLACE, sums, 2 + COUNTERS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &refused, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    all.flop = sums[0];
    all.bytes = sums[1];
    memcpy(all.counted, sums + 2, sizeof all.counted);
    if (refused)
        say_why(refused, all.missing, sizeof all.missing);
    return all;
}
