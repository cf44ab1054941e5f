#include "collective_protocol.h"

#include "common_clock.h"

#include <math.h>

enum {
    CALLS = 8,
    MOST_CALLS = 128,
    PAIRS = 8,
    PAIR_BYTES = 1 << 26,
    OWN_ELEMENTS = 1 << 15,
    STEP = 256,
    SINGLE_WARM_UP = 10
};
/* Nanoseconds from the agreement on a start to the start: doubled after a start that a rank missed. */
static const double least_lead_ns = 1e4, most_lead_ns = 1e6;
static const double most_work_ns = 1e6, least_sample_ns = 5e4;

bool protocol_fits(enum protocol protocol, enum operation operation) {
    return protocol != WITH_GAPS || operation_displaced(operation);
}

int protocol_warm_up(enum protocol protocol) {
    return protocol_repeats(protocol) ? 1 : SINGLE_WARM_UP;
}

bool protocol_repeats(enum protocol protocol) {
    return protocol != COMMON_START && protocol != AFTER_BARRIER;
}

int protocol_buffers(enum protocol protocol, enum operation operation, size_t bytes) {
    if (protocol != CHANGING_BUFFERS)
        return 1;
    size_t fit = PAIR_BYTES / (operation_memory(operation, bytes) + 1);
    return fit < 2 ? 2 : fit < PAIRS ? (int)fit : PAIRS;
}

struct agreed agreed_new(enum protocol protocol) {
    bool repeats = protocol_repeats(protocol);
    return (struct agreed){
        .lead = least_lead_ns, .calls = repeats ? CALLS : 1, .grows = repeats && protocol != WORK_BETWEEN};
}

/* When the last rank is ready: the same time on all ranks, so that they stop after the same sample. */
static void agree(struct agreed *agreed) {
    double latest[2] = {clock_predicted(clock_now()), agreed->missed};
    MPI_Allreduce(MPI_IN_PLACE, latest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    agreed->start = latest[0];
    agreed->missed = latest[1] > 0.0;
}

/* Wait until all ranks are to start; the clock then. */
static double common_start(struct agreed *agreed) {
    if (agreed->missed)
        agreed->lead = fmin(2.0 * agreed->lead, most_lead_ns);
    agreed->start += agreed->lead;
    double now = clock_now();
    agreed->missed = clock_predicted(now) > agreed->start;
    while (clock_predicted(now) < agreed->start)
        now = clock_now();
    return now;
}

/* Work for `ns` on data that no call touches: more than the first cache holds. */
static void work(double ns) {
    static float own[OWN_ELEMENTS];
    static size_t place;
    for (double until = clock_now() + ns; clock_now() < until; place = (place + STEP) % OWN_ELEMENTS)
        for (size_t index = place; index < place + STEP; index++)
            own[index] = 0.5f * own[index] + 1.0f;
}

/* Calls with work of about their own length between them, which the first sample of a size measures.
 * Returns the time of all calls in ns. */
static double calls_with_work(const struct call *call, struct agreed *agreed) {
    double sum = 0.0;
    for (int number = 0; number < CALLS; number++) {
        double begin = clock_now();
        call_make(call);
        sum += clock_now() - begin;
        work(agreed->work);
    }
    if (agreed->work == 0.0) {
        double longest = sum / CALLS;
        MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        agreed->work = fmin(longest, most_work_ns);
    }
    return sum;
}

/* How many calls last as long as a sample shall, if CALLS of them took `ns` on this rank: a multiple of
 * CALLS. */
static int calls_of_a_sample(double ns) {
    double longest = fmax(ns, 1.0);
    MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return CALLS * (int)fmin(fmax(ceil(least_sample_ns / longest), 1.0), MOST_CALLS / CALLS);
}

/* What the calls left in their buffers. Where a call changes its own input, its elements are those of one
 * call more, on fresh data. */
static long faults(struct call *calls, int pairs, int made, long round) {
    if (made > 1 && !call_repeats(calls)) {
        call_prepare(calls, round);
        call_make(calls);
        pairs = 1;
    }
    long wrong = 0;
    for (int pair = 0; pair < pairs; pair++)
        wrong += call_faults(&calls[pair], round);
    return wrong;
}

long protocol_sample(enum protocol protocol, struct call *calls, long round, struct agreed *agreed,
                     double *begin, double *end) {
    int pairs = protocol_buffers(protocol, calls->operation, calls->elements * sizeof(float)),
        made = agreed->calls;
    for (int pair = 0; pair < pairs; pair++)
        call_prepare(&calls[pair], round);
    agree(agreed);
    if (protocol == COMMON_START)
        *begin = common_start(agreed);
    else {
        MPI_Barrier(MPI_COMM_WORLD);
        *begin = clock_now();
    }
    double spent = -1.0;
    if (protocol == WORK_BETWEEN)
        spent = calls_with_work(calls, agreed);
    else
        for (int number = 0; number < made; number++)
            call_make(&calls[number % pairs]);
    *end = spent < 0.0 ? clock_now() : *begin + spent;
    if (agreed->grows)
        agreed->calls = calls_of_a_sample(*end - *begin);
    agreed->grows = false;
    return faults(calls, pairs, made, round);
}

double protocol_time(enum protocol protocol, int calls, double first, double last_end, double longest) {
    return protocol == COMMON_START ? last_end - first : longest / calls;
}
