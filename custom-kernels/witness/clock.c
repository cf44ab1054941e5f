/* Two sorts of clocks. The kernel's, by which the witness measures: asked directly, because a library may
 * stand in the place of the C library's function (libfaketime), and of syscall(2). And those that the program
 * reads. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "mpi_library.h"
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

typedef double (*clock_function)(void);

/* The C library's, and those that programs find above it, whoever put them there. */
static const struct {
    const char *name;
    bool of_mpi;
} readers[CLOCKS] = {
    {"CLOCK_MONOTONIC", false}, {"CLOCK_REALTIME", false}, {"gettimeofday", false},   {"MPI_Wtime", true},
    {"mpi_wtime_", true},       {"omp_get_wtime", false},  {"omp_get_wtime_", false},
};
enum { ABOVE = 3 };
static clock_function above[CLOCKS];

void clocks_find(bool mpi) {
    for (int i = ABOVE; i < CLOCKS; i++)
        if (mpi || !readers[i].of_mpi)
            above[i] = (clock_function)as_function(mpi ? mpi_variable(readers[i].name)
                                                       : dlsym(RTLD_DEFAULT, readers[i].name));
}

void clocks_read(struct clocks *clocks) {
    struct timespec monotonic = {0, 0};
    struct timespec real = {0, 0};
    struct timeval day = {0, 0};
    clocks->before = kernel_microseconds(CLOCK_MONOTONIC);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_REALTIME, &real);
    gettimeofday(&day, NULL);
    for (int i = ABOVE; i < CLOCKS; i++)
        clocks->program[i] = above[i] != NULL ? (long long)(above[i]() * MILLION) : clocks->before;
    clocks->after = kernel_microseconds(CLOCK_MONOTONIC);
    clocks->program[0] = monotonic.tv_sec * MILLION + monotonic.tv_nsec / 1000;
    clocks->program[1] = real.tv_sec * MILLION + real.tv_nsec / 1000;
    clocks->program[2] = day.tv_sec * MILLION + day.tv_usec;
}

/* The process may have lost its CPU between two readings: what that explains is no error. */
long long clocks_error(const struct clocks *begin, const struct clocks *end, const char **name) {
    long long least = end->before - begin->after;
    long long most = end->after - begin->before;
    long long worst = 0;
    *name = readers[0].name;
    for (int i = 0; i < CLOCKS; i++) {
        long long passed = end->program[i] - begin->program[i];
        long long error = passed < least ? passed - least : passed > most ? passed - most : 0;
        if (llabs(error) > llabs(worst)) {
            worst = error;
            *name = readers[i].name;
        }
    }
    return worst;
}
