/* How the kernel schedules a thread (nice value and policy), the personality of the process, and what else of
 * a process's attributes goes from parent to child, through exec too, and can change how fast a program runs
 * (prctl(2), sched_setattr(2), seccomp(2), getrlimit(2), ioprio_set(2), ptrace(2), set_mempolicy(2), groups
 * of resctrl). */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procfile.h"
#include "witness.h"

#define ASK_ONLY 0xffffffffUL
#define SLACK_NS 50000      /* the kernel's default */
#define STACK_BYTES 8388608 /* likewise */
#define CLAMP_MAX 1024      /* of the utilisation, by which the clock of a CPU is chosen */
/* of headers newer than those of the oldest distribution that is served */
#define GET_SPECULATION 52
#define SPECULATION_OFF (4 | 8) /* PR_SPEC_DISABLE, PR_SPEC_FORCE_DISABLE */
#define GET_VECTOR_LENGTH 51    /* of SVE */
#define VECTOR_LENGTH_INHERITED (1 << 17)
#define GET_MEMORY_MERGE 68
/* ioprio_get(2), which has no header */
#define OF_PROCESS 1
#define CLASS_SHIFT 13
#define CLASS_BEST_EFFORT 2
#define LEVEL_USUAL 4

/* struct sched_attr of the kernel, in its second version */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t least_clamp, most_clamp;
};

static struct scheduling start;
static int start_personality, start_memory; /* the mode of set_mempolicy(2), 0: where the thread runs */

/* A thread that has ended meanwhile has nice value 0 and policy -1. */
struct scheduling scheduling_of(pid_t tid) {
    struct scheduling found = {sched_getscheduler(tid), 0};
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, (id_t)tid);
    if (errno == 0)
        found.nice = nice;
    return found;
}

/* A policy of the plan is plumb-bind's. */
void scheduling_start(void) {
    start = scheduling_of(0);
    start_personality = personality(ASK_ONLY);
    const char *plan = getenv("PLUMB_PLAN");
    if (plan == NULL || strstr(plan, "\"policy\":\"none\"") != NULL)
        syscall(SYS_get_mempolicy, &start_memory, NULL, 0UL, NULL, 0UL);
}

void scheduling_write(struct json *out, struct scheduling scheduling) {
    json_int(out, "policy", scheduling.policy & ~SCHED_RESET_ON_FORK);
    json_int(out, "nice", scheduling.nice);
}

static void write_number(struct json *out, const char *name, long long value, const char *unit) {
    char text[80];
    snprintf(text, sizeof text, "%s %lld%s", name, value, unit);
    json_text(out, NULL, text);
}

static void write_clamps(struct json *out) {
    struct attributes attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0U) != 0 ||
        attributes.size < sizeof attributes)
        return;
    if (attributes.most_clamp == 0) /* a kernel without clamps */
        return;
    if (attributes.least_clamp != 0)
        write_number(out, "utilisation at least", attributes.least_clamp, "");
    if (attributes.most_clamp != CLAMP_MAX)
        write_number(out, "utilisation at most", attributes.most_clamp, "");
}

/* Without any, the kernel says so or names the usual level, by its version. */
static void write_io_priority(struct json *out) {
    long priority = syscall(SYS_ioprio_get, OF_PROCESS, 0);
    if (priority <= 0 || priority >> CLASS_SHIFT == 0 ||
        priority == (CLASS_BEST_EFFORT << CLASS_SHIFT | LEVEL_USUAL))
        return;
    write_number(out, "I/O priority of class", priority >> CLASS_SHIFT, "");
    write_number(out, "I/O priority level", priority & ((1 << CLASS_SHIFT) - 1), "");
}

/* "res:/" is the group of all of the caches and memory bandwidth, "res:" a kernel without groups. */
static void write_cache_group(struct json *out) {
    char text[80];
    if (!read_text("/proc/self/cpu_resctrl_groups", text, sizeof text))
        return;
    text[strcspn(text, "\n")] = '\0';
    if (strncmp(text, "res:", 4) == 0 && text[4] != '\0' && strcmp(text, "res:/") != 0)
        json_text(out, NULL, text);
}

static void write_memory_policy(struct json *out) {
    static const char *const names[] = {
        NULL, "preferred", "bind", "interleave", "local", "preferred many", "weighted interleave"};
    char text[80];
    unsigned mode = (unsigned)start_memory & 0xff; /* without flags */
    if (mode == 0 || mode >= sizeof names / sizeof *names)
        return;
    snprintf(text, sizeof text, "memory policy %s", names[mode]);
    json_text(out, NULL, text);
}

/* Only what differs from the kernel's defaults; what a kernel does not know is -1. */
static void write_inherited(struct json *out) {
    json_open(out, "inherited", '[');
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
        json_text(out, NULL, "transparent huge pages off");
    int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    if (slack > 0 && slack != SLACK_NS)
        write_number(out, "timer slack", slack, " ns");
    static const char *const speculations[] = {"speculative stores off", "indirect branch speculation off"};
    for (int which = 0; which < 2; which++) {
        int state = prctl(GET_SPECULATION, which, 0, 0, 0);
        if (state > 0 && (state & SPECULATION_OFF) != 0)
            json_text(out, NULL, speculations[which]);
    }
    int vectors = prctl(GET_VECTOR_LENGTH, 0, 0, 0, 0);
    if (vectors > 0 && (vectors & VECTOR_LENGTH_INHERITED) != 0)
        write_number(out, "SVE vectors of", vectors & 0xffff, " bytes");
    if (prctl(GET_MEMORY_MERGE, 0, 0, 0, 0) > 0)
        json_text(out, NULL, "memory merging on");
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0)
        json_text(out, NULL, "system calls filtered");
    write_clamps(out);
    write_io_priority(out);
    write_cache_group(out);
    write_memory_policy(out);
    size_t tracer = number_behind("/proc/self/status", "TracerPid:");
    if (tracer != 0 && tracer != SIZE_MAX)
        json_text(out, NULL, "traced by a debugger or strace");
    struct rlimit stack = {STACK_BYTES, RLIM_INFINITY};
    getrlimit(RLIMIT_STACK, &stack);
    if (stack.rlim_cur == RLIM_INFINITY)
        json_text(out, NULL, "stack unlimited");
    else if (stack.rlim_cur != STACK_BYTES)
        write_number(out, "stack", (long long)stack.rlim_cur, " bytes");
    json_close(out, ']');
}

void scheduling_write_start(struct json *out) {
    scheduling_write(out, start);
    json_int(out, "personality", start_personality);
    write_inherited(out);
}

void scheduling_write_end(struct json *out) {
    json_int(out, "personality", personality(ASK_ONLY));
}
