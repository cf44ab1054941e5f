#include "timer.h"

#include "samples.h"

#include <math.h>

enum { READINGS = 2001, LOOKS = 20, CALIBRATION_NS = 20000000 };

int timer_uses_clock = 1;
static struct timer facts = {"clock_gettime", 1.0, 1.0, 0.0};

const struct timer *timer_facts(void) {
    return &facts;
}

double ticks_ns(uint64_t difference) {
    return (double)difference * facts.ns_per_tick;
}

double ticks_s(uint64_t difference) {
    return (double)difference * facts.ns_per_tick * 1e-9;
}

static double clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

struct moment {
    double clock_ns;
    uint64_t ticks;
};

/* Both counters at once: of some readings that between which least time went by, so that a wait for the CPU
 * in one of them does not count. */
static struct moment look(void) {
    struct moment found = {0};
    uint64_t least = UINT64_MAX;
    for (int reading = 0; reading < LOOKS; reading++) {
        uint64_t before = ticks();
        double now = clock_ns();
        uint64_t took = ticks() - before;
        if (took < least) {
            least = took;
            found = (struct moment){now, before + took / 2};
        }
    }
    return found;
}

static double calibrate(void) {
    struct moment begin = look();
    while (clock_ns() - begin.clock_ns < CALIBRATION_NS) {
    }
    struct moment end = look();
    return end.ticks > begin.ticks ? (end.clock_ns - begin.clock_ns) / (double)(end.ticks - begin.ticks)
                                   : 0.0;
}

/* Cost and smallest step of back-to-back readings. */
static void look_at_resolution(void) {
    static double steps[READINGS];
    uint64_t before = ticks();
    double least = INFINITY;
    for (int reading = 0; reading < READINGS; reading++) {
        uint64_t now = ticks();
        steps[reading] = ticks_ns(now - before);
        if (steps[reading] > 0.0 && steps[reading] < least)
            least = steps[reading];
        before = now;
    }
    facts.cost_ns = summarize(steps, READINGS).median;
    facts.resolution_ns = isinf(least) ? facts.ns_per_tick : least;
}

void timer_start(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    timer_uses_clock = 0;
    double first = calibrate(), second = calibrate();
    /* Two calibrations that disagree mean a counter that is emulated, drifts or stops. */
    if (first > 0.0 && fabs(first - second) < 1e-3 * first) {
        facts.ns_per_tick = second;
#if defined(__x86_64__)
        facts.source = "tsc";
#else
        facts.source = "cntvct";
#endif
    } else
        timer_uses_clock = 1;
#endif
    look_at_resolution();
}
