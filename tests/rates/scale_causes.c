/* A program with one cause of a bend: its name, and the CPU seconds of the whole work, which all threads
 * share. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void work(double s) {
    const double end = used() + s;
    volatile double value = 1;
    while (used() < end)
        for (int turn = 0; turn < 2000; turn++)
            value = value * 1.0000001 + 1e-9;
}

static void touch(double s) { /* memory that is given back and asked for again */
    const double end = used() + s;
    const size_t size = 4 << 20;
    while (used() < end) {
        char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(pages, size, MADV_NOHUGEPAGE);
        memset(pages, 1, size);
        munmap(pages, size);
    }
}

static void stream(double *data, long size, int passes) {
#pragma omp parallel
    for (int pass = 0; pass < passes; pass++) {
#pragma omp for schedule(static)
        for (long at = 0; at < size; at++)
            data[at] = data[size + at] + 3 * data[2 * size + at];
    }
}

int main(int count, char **words) {
    const char *cause = words[1];
    const double s = atof(words[2]);
    const int n = omp_get_max_threads();
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (!strcmp(cause, "bandwidth")) {
        const long size = 16 << 20;
        double *data = malloc(3 * size * sizeof *data);
#pragma omp parallel for schedule(static)
        for (long at = 0; at < 3 * size; at++)
            data[at] = 1;
        stream(data, size, (int)(s * 60));
        return data[size / 2] == 0;
    }
    if (!strcmp(cause, "serial"))
        work(0.3 * s);
    if (!strcmp(cause, "serial+faults"))
        work(0.2 * s);
#pragma omp parallel
    {
        const int last = omp_get_thread_num() == n - 1;
        if (!strcmp(cause, "shared core")) {
            cpu_set_t all, one;
            sched_getaffinity(getpid(), sizeof all, &all);
            CPU_ZERO(&one);
            for (int cpu = CPU_SETSIZE; cpu--;)
                if (CPU_ISSET(cpu, &all)) {
                    CPU_ZERO(&one);
                    CPU_SET(cpu, &one);
                }
            sched_setaffinity(0, sizeof one, &one);
        }
        if (!strcmp(cause, "load"))
            work(n == 1 ? s : last ? 0.7 * s : 0.3 * s / (n - 1));
        else if (!strcmp(cause, "lock"))
            for (int turn = 0; turn < 400 / n; turn++) {
                pthread_mutex_lock(&lock);
                work(0.7 * s / 400);
                pthread_mutex_unlock(&lock);
                work(0.3 * s / 400);
            }
        else if (!strcmp(cause, "faults")) {
            work(0.6 * s / n);
            touch(0.4 * s);
        } else if (!strcmp(cause, "serial+faults")) {
            work(0.5 * s / n);
            touch(0.3 * s);
        } else
            work((strcmp(cause, "serial") ? 1 : 0.7) * s / n);
    }
    return 0;
}
