/* Time: the processor's counter where it is steady, the system's monotonic clock elsewhere. */
#ifndef PLUMB_KERNEL_TIMER_H
#define PLUMB_KERNEL_TIMER_H

#include <stdint.h>
#include <time.h>

struct timer {
    const char *source;   /* "tsc", "cntvct" or "clock_gettime" */
    double ns_per_tick;   /* calibrated against CLOCK_MONOTONIC */
    double resolution_ns; /* smallest step between two readings */
    double cost_ns;       /* median cost of one reading */
};

/* Calibrate; takes about 40 ms. Called by program_start. */
void timer_start(void);
const struct timer *timer_facts(void);

/* Set by timer_start: the counter is not to be trusted here. */
extern int timer_uses_clock;

/* The counter now. Earlier instructions are finished before it is read. */
static inline uint64_t ticks(void) {
    if (!timer_uses_clock) {
#if defined(__x86_64__)
        __builtin_ia32_lfence();
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
        uint64_t value;
        __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
        return value;
#endif
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A difference of ticks() in nanoseconds, and in seconds. */
double ticks_ns(uint64_t difference);
double ticks_s(uint64_t difference);

#endif
