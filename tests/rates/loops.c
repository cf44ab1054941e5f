/* Loops that no compiler shortens, of so many turns: it computes, with -DMEMORY waits for memory, with
 * -DCALLS calls the system. With a second word it raises the priority of its session. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    FILE *file = count > 2 ? fopen("/proc/self/autogroup", "w") : NULL;
    if (file) {
        fputs("-19", file);
        fclose(file);
    }
    long turns = count > 1 ? atol(words[1]) : 0;
    volatile double value = 1;
#if defined MEMORY
    enum { PART = 1 << 12, PARTS = 1 << 11 };
    double *field = malloc(sizeof(double) * PART * PARTS);
    for (long place = 0; place < PART * PARTS; place++)
        field[place] = 1;
    for (long left = turns / 1100; left > 0; left--)
        for (long place = left % PARTS * PART; place < (left % PARTS + 1) * PART; place++)
            field[place] += 1e-9;
    value = field[7];
#elif defined CALLS
    for (; turns; turns--)
        value += syscall(SYS_getppid) > 1;
#else
    for (; turns; turns--)
        value = value * 1.0000001 + 1e-9;
#endif
    printf("%f\n", value);
    return 0;
}
