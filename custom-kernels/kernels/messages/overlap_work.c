#include "overlap_work.h"

#include "samples.h"
#include "timer.h"

/* Knuth's MMIX generator. */
static const uint64_t factor = 6364136223846793005u, increment = 1442695040888963407u;

enum { TIMINGS = 11, CALIBRATION_STEPS = 500000 };

uint64_t work(uint64_t state, size_t steps) {
    for (size_t step = 0; step < steps; step++)
        state = state * factor + increment;
    return state;
}

uint64_t work_expected(uint64_t state, size_t steps) {
    uint64_t a = factor, c = increment;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            state = state * a + c;
        c *= a + 1;
        a *= a;
    }
    return state;
}

double work_calibrate(void) {
    double times[TIMINGS];
    volatile uint64_t state = 1;
    for (int timing = 0; timing < TIMINGS; timing++) {
        uint64_t begin = ticks();
        state = work(state, CALIBRATION_STEPS);
        times[timing] = ticks_ns(ticks() - begin) / CALIBRATION_STEPS;
    }
    return summarize(times, TIMINGS).median;
}
