/* Threads of OpenMP that use 0.2 s of CPU time each. */
#include <time.h>
static double now(clockid_t c) {
    struct timespec t;
    clock_gettime(c, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(void) {
#pragma omp parallel num_threads(2)
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + 0.2; now(CLOCK_THREAD_CPUTIME_ID) < end;)
        ;
    return 0;
}
