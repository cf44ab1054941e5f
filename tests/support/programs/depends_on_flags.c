/* Its figure depends on how it was compiled. */
#include <stdio.h>
#include <time.h>
int main(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
#ifdef __OPTIMIZE__
    double steps = 1000;
#else
    double steps = 1250;
#endif
    printf("steps: %.3f\n", steps * (1 + 0.002 * (now.tv_nsec / 1000 % 1000) / 1000));
    return 0;
}
