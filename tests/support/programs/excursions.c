/* Works for hundredths of a second at home, before and after excursions: as many, each with microseconds of
 * CPU time; who goes there, and by the C library's call or the system call alone. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static char **words;
static void work(long us) {
    struct timespec at, begin;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    while ((at.tv_sec - begin.tv_sec) * 1000000 + (at.tv_nsec - begin.tv_nsec) / 1000 < us);
}
static void bind_to(int cpu, int raw) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (raw)
        syscall(SYS_sched_setaffinity, 0, sizeof set, &set);
    else if (words[3][0] == 'p')
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    else
        sched_setaffinity(0, sizeof set, &set);
}
static void *go(void *unused) {
    for (int i = 0; i < atoi(words[4]); i++) {
        bind_to(atoi(words[1]), words[3][0] == 'r');
        work(atol(words[5]));
        bind_to(atoi(words[2]), !strcmp(words[3], "raw"));
    }
    if (!strcmp(words[3], "pthread-exit"))
        pthread_exit(NULL);
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    words = argv;
    (void)argc;
    work(10000 * atol(argv[6]));
    if (!strncmp(argv[3], "pthread", 7)) {
        pthread_create(&thread, NULL, go, NULL);
        pthread_join(thread, NULL);
    } else if (!strncmp(argv[3], "child", 5)) {
        if (fork() == 0) {
            go(NULL);
            if (!strcmp(argv[3], "child-_exit"))
                _exit(0);
            if (!strcmp(argv[3], "child-call"))
                syscall(SYS_exit_group, 0);
            exit(0);
        }
        wait(NULL);
    } else {
        go(NULL);
    }
    work(10000 * atol(argv[7]));
    return 0;
}
