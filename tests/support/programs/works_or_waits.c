/* An MPI program that works for hundredths of a second, or sleeps in pieces of microseconds for as long, or
 * with -1 stops itself before each hundredth; with a word, a second thread works then, too, and stays. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
int MPI_Init(int *, char ***), MPI_Finalize(void);
static void *work(void *hundredths) {
    clock_t end = clock() + atoi(hundredths) * (CLOCKS_PER_SEC / 100);
    while (clock() < end) {
    }
    for (;;)
        pause();
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t other;
    MPI_Init(NULL, NULL);
    if (argc > 4)
        pthread_create(&other, NULL, work, argv[1]);
    for (int left = atoi(argv[1]); atoi(argv[2]) < 0 && left > 0; left--) {
        raise(SIGSTOP);
        for (clock_t end = clock() + CLOCKS_PER_SEC / 100; clock() < end;) {
        }
    }
    clock_t end = clock() + atoi(argv[1]) * (CLOCKS_PER_SEC / 100);
    while (atoi(argv[2]) == 0 && clock() < end) {
    }
    for (int left = atoi(argv[1]) * 10000; atoi(argv[2]) > 0 && left > 0; left -= atoi(argv[2]))
        usleep(atoi(argv[2]));
    if (argc > 3)
        setpriority(PRIO_PROCESS, 0, atoi(argv[3]));
    return MPI_Finalize();
}
