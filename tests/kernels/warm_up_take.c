/* Warms up by calls of a function, and tells what the kernel would remark: for test_warm_up.py. */
#include "warm_up.h"

#include <stdarg.h>
#include <stdio.h>

static char said[1000];
void result_remark(struct result *result, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(said, sizeof said, format, values);
    va_end(values);
    (void)result;
}
const char *remark(const struct warm_ups *all) {
    said[0] = 0;
    warm_ups_remark(NULL, all);
    return said;
}
long take(double most_s, void (*call)(long first, long calls, double *ns, double *faults),
          struct warm_ups *all) {
    struct warm_up warm_up = warm_up_new(most_s);
    long calls = 0;
    while (!warm_up.over) {
        struct batch batch;
        call(calls, warm_up.calls, &batch.ns, &batch.faults);
        calls += warm_up.calls;
        warm_up_add(&warm_up, batch);
    }
    warm_ups_count(all, &warm_up);
    return calls;
}
