/* A clock of another day, twice as fast from a call on. */
#include <time.h>
double FUNCTION(void) {
    static long calls;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (calls++ < RIGHT ? 1 : 2) * (now.tv_sec + now.tv_nsec / 1e9) + 86400;
}
