/* Ignores a signal and has threads of small stacks, for the tests of profiles. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
static void *nothing(void *unused) {
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    pthread_attr_t small;
    signal(SIGTERM, SIG_IGN);
    MPI_Init(&argc, &argv);
    raise(SIGTERM);
    pthread_attr_init(&small);
    int fault = pthread_attr_setstacksize(&small, 32768) || pthread_create(&thread, &small, nothing, NULL);
    return MPI_Finalize() || fault || pthread_join(thread, NULL);
}
