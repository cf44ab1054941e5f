#include "warm_up.h"

#include "samples.h"
#include "timer.h"

#include <math.h>
#include <sys/resource.h>

enum { LEAST_NS = 5000000, FAULT_NS = 1000 };
static const double most_change = 0.02, most_of_faults = 0.01;

struct warm_up warm_up_new(double most_s) {
    return (struct warm_up){.calls = 1, .least_ns = fmin(LEAST_NS, 1e9 * most_s), .most_ns = 1e9 * most_s};
}

static struct batch now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct batch){.ns = ticks_ns(ticks()), .faults = (double)usage.ru_minflt};
}

void warm_up_begin(struct warm_up *warm_up) {
    warm_up->begin = now();
    warm_up->begun = true;
}

struct batch warm_up_taken(const struct warm_up *warm_up) {
    struct batch end = now();
    return (struct batch){end.ns - warm_up->begin.ns, end.faults - warm_up->begin.faults};
}

/* Look at the newer half. */
static void judge(struct warm_up *warm_up) {
    int half = warm_up->count - warm_up->count / 2, quarter = half / 2;
    const struct batch *newer = warm_up->batches + warm_up->count - half;
    double times[WARM_UP_BATCHES], ratios[WARM_UP_BATCHES], faults = 0.0;
    for (int index = 0; index < half; index++) {
        times[index] = newer[index].ns;
        faults += newer[index].faults / half;
    }
    for (int index = 0; index < quarter; index++)
        ratios[index] = times[index + quarter] / times[index];
    double median = summarize(times, (size_t)half).median; /* interruptions do not count */
    warm_up->change = quarter > 0 ? summarize(ratios, (size_t)quarter).median - 1.0 : 0.0;
    warm_up->call_ns = median / (double)warm_up->calls;
    warm_up->faults = FAULT_NS * faults > most_of_faults * median ? faults / (double)warm_up->calls : 0.0;
    warm_up->unsteady = false;
    if (quarter >= LEAST_FOR_INTERVAL) {
        struct interval interval = median_interval(ratios, (size_t)quarter);
        warm_up->unsteady =
            interval.high < 1.0 - most_change || interval.low > 1.0 + most_change || warm_up->faults > 0.0;
    }
}

static void merge_pairs(struct warm_up *warm_up) {
    warm_up->count /= 2;
    warm_up->calls *= 2;
    for (int index = 0; index < warm_up->count; index++) {
        const struct batch *pair = &warm_up->batches[2 * index];
        warm_up->batches[index] = (struct batch){pair[0].ns + pair[1].ns, pair[0].faults + pair[1].faults};
    }
}

void warm_up_add(struct warm_up *warm_up, struct batch batch) {
    warm_up->batches[warm_up->count++] = batch;
    warm_up->passed_ns += batch.ns;
    bool full = warm_up->count == WARM_UP_BATCHES, late = warm_up->passed_ns >= warm_up->most_ns;
    if (late || (full && warm_up->passed_ns >= warm_up->least_ns))
        judge(warm_up);
    warm_up->over = late || (full && warm_up->passed_ns >= warm_up->least_ns && !warm_up->unsteady);
    if (full && !warm_up->over)
        merge_pairs(warm_up);
}

bool warm_up_next(struct warm_up *warm_up, MPI_Comm comm) {
    if (warm_up->begun) {
        struct batch own = warm_up_taken(warm_up), all;
        MPI_Allreduce(&own, &all, 2, MPI_DOUBLE, MPI_MAX, comm);
        warm_up_add(warm_up, all);
    }
    if (!warm_up->over)
        warm_up_begin(warm_up);
    return !warm_up->over;
}

void warm_ups_count(struct warm_ups *warm_ups, const struct warm_up *warm_up) {
    warm_ups->all++;
    warm_ups->unsteady += warm_up->unsteady;
    if (warm_up->unsteady && fabs(warm_up->change) >= fabs(warm_ups->change)) {
        warm_ups->change = warm_up->change;
        warm_ups->faults = warm_up->faults;
        warm_ups->passed_ns = warm_up->passed_ns;
    }
}

void warm_ups_remark(struct result *result, const struct warm_ups *warm_ups) {
    if (warm_ups->unsteady == 0)
        return;
    result_remark(
        result,
        "not steady: %ld of %ld figures; after %.2g s of warm-up a call's time still changed by %.1f %%, "
        "with %.2g page faults a call; likely cause: %s",
        warm_ups->unsteady, warm_ups->all, 1e-9 * warm_ups->passed_ns, 100.0 * fabs(warm_ups->change),
        warm_ups->faults,
        warm_ups->faults > 0.0 ? "memory that is touched for the first time"
                               : "other programs, or a clock of the cores that changes");
}
