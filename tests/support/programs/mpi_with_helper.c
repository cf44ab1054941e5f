/* A library with a helper thread that ends in MPI_Finalize, as real ones have. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int ending, started;
static pthread_t helper;
static void *progress(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "progress");
    started = 1;
    while (!ending)
        usleep(1000);
    return NULL;
}
int MPI_Init(void) {
    int fault = pthread_create(&helper, NULL, progress, NULL);
    while (fault == 0 && !started)
        usleep(1000);
    return fault;
}
int PMPI_Finalize(void) {
    ending = 1;
    pthread_join(helper, NULL);
    puts("finalized");
    return 0;
}
int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));
