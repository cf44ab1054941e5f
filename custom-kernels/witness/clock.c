/* Two sorts of clocks. The kernel's, by which the witness measures: asked directly, because a library may
 * stand in the place of the C library's function (libfaketime), and of syscall(2). And those that the program
 * reads. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "witness.h"

#define MILLION 1000000LL

long long kernel_microseconds(clockid_t clock) {
    struct timespec time = {0, 0};
#if defined __x86_64__
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_clock_gettime), "D"((long)clock), "S"(&time)
                     : "rcx", "r11", "memory");
#elif defined __aarch64__
    register long result __asm__("x0") = (long)clock;
    register struct timespec *where __asm__("x1") = &time;
    register long number __asm__("x8") = SYS_clock_gettime;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(where), "r"(number) : "memory");
#else
    long result = syscall(SYS_clock_gettime, clock, &time);
#endif
    return result == 0 ? time.tv_sec * MILLION + time.tv_nsec / 1000 : 0;
}

void clocks_read(struct clocks *clocks) {
    struct timespec monotonic = {0, 0};
    struct timespec real = {0, 0};
    struct timeval day = {0, 0};
    clocks->before = kernel_microseconds(CLOCK_MONOTONIC);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_REALTIME, &real);
    gettimeofday(&day, NULL);
    clocks->after = kernel_microseconds(CLOCK_MONOTONIC);
    clocks->program[0] = monotonic.tv_sec * MILLION + monotonic.tv_nsec / 1000;
    clocks->program[1] = real.tv_sec * MILLION + real.tv_nsec / 1000;
    clocks->program[2] = day.tv_sec * MILLION + day.tv_usec;
}

/* The process may have lost its CPU between two readings: what that explains is no error. */
long long clocks_error(const struct clocks *begin, const struct clocks *end) {
    long long least = end->before - begin->after;
    long long most = end->after - begin->before;
    long long worst = 0;
    for (int i = 0; i < CLOCKS; i++) {
        long long passed = end->program[i] - begin->program[i];
        long long error = passed < least ? passed - least : passed > most ? passed - most : 0;
        if (llabs(error) > llabs(worst))
            worst = error;
    }
    return worst;
}
