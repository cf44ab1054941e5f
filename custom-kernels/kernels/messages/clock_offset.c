#include "clock_offset.h"

#include <math.h>

struct offset offset_of(const struct round_trip *trips, int count) {
    const struct round_trip *best = &trips[0];
    for (int index = 1; index < count; index++)
        if (trips[index].back - trips[index].sent < best->back - best->sent)
            best = &trips[index];
    double middle = 0.5 * (best->sent + best->back);
    return (struct offset){middle, best->theirs - middle, 0.5 * (best->back - best->sent)};
}

double out_of_order(const struct round_trip *trips, int count) {
    double most = 0.0;
    for (int index = 0; index < count; index++)
        most = fmax(most,
                    fmax(trips[index].sent - trips[index].theirs, trips[index].theirs - trips[index].back));
    return most;
}

static double slope(const struct line *line) {
    double apart = line->last.at - line->first.at;
    return apart > 0.0 ? (line->last.value - line->first.value) / apart : 0.0;
}

struct line line_ahead(struct offset first, struct offset last) {
    double change = last.value - first.value, unsure = first.error + last.error;
    first.value = last.value - copysign(fmax(0.0, fabs(change) - unsure), change);
    return (struct line){first, last};
}

double line_at(const struct line *line, double at) {
    return line->last.value + slope(line) * (at - line->last.at);
}

double line_error(const struct line *line) {
    return fmax(line->first.error, line->last.error);
}

double line_drift_ppm(const struct line *line) {
    return 1e6 * slope(line);
}
