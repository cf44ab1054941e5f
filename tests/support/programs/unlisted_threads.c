/* A thread works for hundredths of a second of CPU time: "return" ends as a thread should, "exit" by the
 * system call, "clone" was started by clone(2) and never was a thread of the C library. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static atomic_int done;
static char stack[1 << 16];
static int hundredths;
static long long cpu(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 100 + now.tv_nsec / 10000000;
}
static int work(void *way) {
    while (cpu() < hundredths) {
    }
    done = 1;
    if (strcmp(way, "return"))
        syscall(SYS_exit, 0);
    return 0;
}
static void *thread(void *way) {
    work(way);
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t one;
    (void)argc;
    hundredths = atoi(argv[2]);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (!strcmp(argv[1], "clone"))
        clone(work, stack + sizeof stack, flags, argv[1]);
    else
        pthread_create(&one, NULL, thread, argv[1]);
    while (!done)
        usleep(1000);
    usleep(100000);
    return 0;
}
