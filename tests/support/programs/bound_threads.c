#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t ready;
static void *work(void *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(*(int *)cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_setname_np(pthread_self(), "worker");
    pthread_barrier_wait(&ready);
    for (;;)
        pause();
}
int main(int argc, char **argv) {
    int cpu[64];
    pthread_barrier_init(&ready, NULL, (unsigned)argc);
    for (int i = 1; i < argc; i++) {
        pthread_t thread;
        cpu[i] = atoi(argv[i]);
        pthread_create(&thread, NULL, work, &cpu[i]);
    }
    pthread_barrier_wait(&ready);
    exit(7);
}
