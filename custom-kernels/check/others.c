#include "others.h"

#include "child.h"
#include "fail.h"
#include "gpus.h"
#include "procfile.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PIDS = 1 << 22, LEAST_TICKS = 10 }; /* Linux has no larger pids */

static double busy, own, began, looked;

/* CPU seconds of all: user, nice, system, interrupts and what the hypervisor took; not idle and iowait. */
static double all_busy(void) {
    char text[512];
    unsigned long long part[8] = {0};
    if (!read_text("/proc/stat", text, sizeof text) ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", part, part + 1, part + 2, part + 3,
               part + 4, part + 5, part + 6, part + 7) < 4)
        return 0.0;
    return (double)(part[0] + part[1] + part[2] + part[5] + part[6] + part[7]) / (double)sysconf(_SC_CLK_TCK);
}

void others_begin(void) {
    busy = all_busy();
    own = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    began = clock_s(CLOCK_MONOTONIC);
}

double others_end(void) {
    double used = all_busy() - busy - (clock_s(CLOCK_PROCESS_CPUTIME_ID) - own);
    double elapsed = clock_s(CLOCK_MONOTONIC) - began;
    return used > 0.0 && elapsed > 0.0 ? used / elapsed : 0.0;
}

/* CPU ticks of the processes at the begin, by pid: only its pages with a process are there. */
static unsigned *before;
static int most_pid, left_out;
static double most_ticks;
static char most_name[64];

/* CPU ticks of a process, and its name; -1 if it has ended. */
static double ticks_of(const char *pid, char *name, size_t size) {
    char path[64], line[512];
    unsigned long long user, system;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    if (!read_text(path, line, sizeof line))
        return -1.0;
    char *open_bracket = strchr(line, '('), *close_bracket = strrchr(line, ')');
    if (!open_bracket || !close_bracket ||
        sscanf(close_bracket + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) !=
            2)
        return -1.0;
    *close_bracket = '\0';
    snprintf(name, size, "%s", open_bracket + 1);
    return (double)(user + system);
}

static void look(const char *entry, void *again) {
    char name[64];
    int pid = atoi(entry);
    if (pid <= 0 || pid >= MOST_PIDS || pid == getpid() || pid == left_out)
        return;
    double used = ticks_of(entry, name, sizeof name);
    if (used < 0.0 || !strcmp(name, GPUS_PROGRAM)) /* our own, still at its end */
        return;
    if (!*(const bool *)again)
        before[pid] = (unsigned)used;
    else if (used - before[pid] > most_ticks) {
        most_ticks = used - before[pid];
        most_pid = pid;
        memcpy(most_name, name, sizeof name);
    }
}

static void look_at_all(bool again) {
    int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    entries_visit(folder, look, &again);
    close(folder);
}

void processes_begin(void) {
    if (!before)
        before = allocate(MOST_PIDS, sizeof *before);
    looked = clock_s(CLOCK_MONOTONIC);
    look_at_all(false);
}

const char *processes_end(int except) {
    if (!before)
        return NULL;
    left_out = except;
    most_ticks = 0.0;
    look_at_all(true);
    double seconds = clock_s(CLOCK_MONOTONIC) - looked;
    double cpus = most_ticks / (double)sysconf(_SC_CLK_TCK) / (seconds > 0.0 ? seconds : 1.0);
    return cpus > 0.1 && most_ticks >= LEAST_TICKS ? text("%s (%d), %.1f CPUs", most_name, most_pid, cpus)
                                                   : NULL;
}
