/* How the kernel schedules a thread (nice value and policy), and the personality of the process. */
#include <errno.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include "witness.h"

#define ASK_ONLY 0xffffffffUL

static struct scheduling start;
static int start_personality;

/* A thread that has ended meanwhile has nice value 0 and policy -1. */
struct scheduling scheduling_of(pid_t tid) {
    struct scheduling found = {sched_getscheduler(tid), 0};
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, (id_t)tid);
    if (errno == 0)
        found.nice = nice;
    return found;
}

void scheduling_start(void) {
    start = scheduling_of(0);
    start_personality = personality(ASK_ONLY);
}

void scheduling_write(struct json *out, struct scheduling scheduling) {
    json_int(out, "policy", scheduling.policy & ~SCHED_RESET_ON_FORK);
    json_int(out, "nice", scheduling.nice);
}

void scheduling_write_start(struct json *out) {
    scheduling_write(out, start);
    json_int(out, "personality", start_personality);
}

void scheduling_write_end(struct json *out) {
    json_int(out, "personality", personality(ASK_ONLY));
}
