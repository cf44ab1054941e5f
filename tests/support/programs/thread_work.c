#include <pthread.h>
#include <time.h>
static double now(clockid_t c) {
    struct timespec t;
    clock_gettime(c, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static void *work(void *x) {
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + 0.2; now(CLOCK_THREAD_CPUTIME_ID) < end;)
        ;
    return x;
}
int main(void) {
    pthread_t both[2];
    for (int i = 0; i < 2; i++)
        pthread_create(both + i, 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(both[i], 0);
    return 0;
}
