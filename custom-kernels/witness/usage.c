#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "witness.h"

/* The counters survive exec, so the binder's share is taken off: everything here is since the constructor. */
static struct rusage start_usage;
static long long start_microseconds;

static long long monotonic(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static long long elapsed(struct timeval end, struct timeval start) {
    return (end.tv_sec - start.tv_sec) * 1000000LL + (end.tv_usec - start.tv_usec);
}

void usage_start(void) {
    getrusage(RUSAGE_SELF, &start_usage);
    start_microseconds = monotonic();
}

void usage_write(struct json *out) {
    struct rusage end;
    memset(&end, 0, sizeof end);
    getrusage(RUSAGE_SELF, &end);
    json_open(out, "usage", '{');
    json_seconds(out, "wall_s", monotonic() - start_microseconds);
    json_seconds(out, "user_s", elapsed(end.ru_utime, start_usage.ru_utime));
    json_seconds(out, "system_s", elapsed(end.ru_stime, start_usage.ru_stime));
    json_int(out, "voluntary_switches", end.ru_nvcsw - start_usage.ru_nvcsw);
    json_int(out, "involuntary_switches", end.ru_nivcsw - start_usage.ru_nivcsw);
    json_int(out, "minor_faults", end.ru_minflt - start_usage.ru_minflt);
    json_int(out, "major_faults", end.ru_majflt - start_usage.ru_majflt);
    json_close(out, '}');
}
