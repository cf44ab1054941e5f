#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int MPI_Recv(void *, int, int, int, int, int, void *);
int MPI_Sendrecv(const void *, int, int, int, int, void *, int, int, int, int, int, void *);
int mpi_wait_(void);
static void *in_wait(void *unused) {
    (void)unused;
    mpi_wait_();
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t thread;
    (void)argc;
    if (strstr(argv[1], "deaf"))
        signal(SIGRTMIN + 12, SIG_DFL);
    if (strstr(argv[1], "thread"))
        pthread_create(&thread, NULL, in_wait, NULL);
    puts("ready"), fflush(stdout);
    if (strstr(argv[1], "recv"))
        MPI_Recv(NULL, 1, 2, 3, 7, 4, NULL);
    if (strstr(argv[1], "any"))
        MPI_Recv(NULL, 1, 2, -2, -1, 4, NULL);
    if (strstr(argv[1], "both"))
        MPI_Sendrecv(NULL, 1, 2, 12, 70000, NULL, 1, 2, 0, 5, 4, NULL);
    for (;;)
        pause();
}
