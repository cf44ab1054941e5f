/* Rounds measured by a process of its own: it can be ended at any moment, and what it measured by then is
 * kept. */
#ifndef PLUMB_CHECK_CHILD_H
#define PLUMB_CHECK_CHILD_H

#include "class.h"
#include "figures.h"

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* Measure `planned` rounds, of GPUs too if `gpus`, until `deadline` (of the monotonic clock, in seconds).
 * After each round beside other work `look` is called; where it returns false, measuring ends. */
struct measured {
    struct round rounds[MOST_ROUNDS];
    int count;
    pid_t process;
    const char *found;        /* a result that cannot be; NULL: none */
    const char *ended;        /* why there are fewer rounds than planned; NULL: there are not */
    const char *without_gpus; /* why rounds lack the GPUs that were asked for; NULL: they do not */
};

void child_measure(struct measured *measured, const struct class *class, bool gpus, int planned,
                   double deadline, bool (*look)(void *context), void *context);

/* A clock in seconds. */
double clock_s(clockid_t clock);

#endif
