/* libplumbyields.so, preloaded by `plumb doctor --mpi`: counts the calls of sched_yield between
 * MPI_Init_thread and MPI_Finalize. Each process writes its count to PLUMB_YIELDS_DIR/PID. With
 * PLUMB_YIELDS_SPIN the CPU is kept: the call returns at once.
 *
 * Not part of the witness: a library that yields at every poll would be slower for being counted. */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "next_function.h"

typedef int (*init_thread_function)(int *, char ***, int, int *);
typedef int (*finalize_function)(void);

EXPORT int MPI_Init_thread(int *count, char ***words, int required, int *provided);
EXPORT int MPI_Finalize(void);

static atomic_long calls;
static int spin;

EXPORT int sched_yield(void) {
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return spin ? 0 : (int)syscall(SYS_sched_yield);
}

static __attribute__((constructor)) void start(void) {
    spin = getenv("PLUMB_YIELDS_SPIN") != NULL;
}

/* What libraries do while they start and end is not waiting for messages. */
EXPORT int MPI_Init_thread(int *count, char ***words, int required, int *provided) {
    init_thread_function real = (init_thread_function)next_function("MPI_Init_thread");
    int status = real == NULL ? 1 : real(count, words, required, provided);
    atomic_store(&calls, 0);
    return status;
}

EXPORT int MPI_Finalize(void) {
    finalize_function real = (finalize_function)next_function("MPI_Finalize");
    char path[4096];
    char text[32];
    const char *folder = getenv("PLUMB_YIELDS_DIR");
    int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
    snprintf(path, sizeof path, "%s/%ld", folder == NULL ? "." : folder, (long)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        perror("plumbyields: cannot write the count");
    if (fd >= 0)
        close(fd);
    return real == NULL ? 1 : real();
}
