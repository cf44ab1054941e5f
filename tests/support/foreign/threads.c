/* Threads of pthreads that nobody binds, or that bind themselves. What it does is its first argument.
 *   two          two threads work
 *   bound        each binds itself to the CPU of its number
 *   process      the process binds itself to the CPU of its rank, and works in one thread
 *   swapped      to the CPU of the other one of two ranks
 *   finalized    it ends by _exit after MPI_Finalize
 *   vanishes     it ends by the system call after MPI_Finalize, as a program does that is linked statically
 *   quits        it ends by _exit without MPI_Finalize
 *   helpers      it starts short helpers while it works
 *   servant      it starts a helper that works as long as it does
 *   forsaken     the same, and the helper is killed when it has worked
 *   child        the same, and the helper ends by _exit
 *   killed       its first rank is killed by signal 9
 *   crashes      its first rank writes where no memory is
 *   fails        it prints an error and no figure, and ends well
 *   refuses      it ends with status 3 and a sentence without any word of error
 *   reads        its first rank reads its standard input, and nothing is there for the others
 *   hungry       its first rank takes memory until there is none
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *how;
static int rank;

static void work(double seconds) {
    struct timespec now;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec < seconds);
}

static void bind_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        perror("sched_setaffinity");
}

static void *thread(void *number) {
    int own = (int)(long)number;
    if (!strcmp(how, "bound"))
        bind_to(own);
    work(0.15);
    return NULL;
}

static void two_threads(void) {
    pthread_t other;
    pthread_create(&other, NULL, thread, (void *)1L);
    thread((void *)0L);
    pthread_join(other, NULL);
}

static void take_memory(void) {
    const size_t step = (size_t)16 << 20;
    for (;;) {
        char *block = malloc(step);
        if (!block) {
            perror("16 MiB more");
            exit(4);
        }
        memset(block, 1, step);
    }
}

static void read_input(void) {
    char word[64] = "";
    bool told = fgets(word, sizeof word, stdin) != NULL;
    if (told != (rank == 0) || strcmp(word, told ? "steps 3\n" : "") != 0)
        exit(5);
}

static void end(void) {
    if (!strcmp(how, "killed"))
        raise(SIGKILL);
    if (!strcmp(how, "crashes"))
        *(volatile int *)8 = 1;
    if (!strcmp(how, "hungry"))
        take_memory();
    if (!strcmp(how, "refuses")) {
        fprintf(stderr, "a lattice of side 7 has no checkerboard\n");
        exit(3);
    }
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "two";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pid_t servant = 0;
    bool forsaken = !strcmp(how, "forsaken"), child = !strcmp(how, "child");
    if ((forsaken || child || !strcmp(how, "servant")) && !(servant = fork())) {
        work(0.15);
        if (forsaken)
            raise(SIGKILL);
        if (child)
            _exit(0);
        exit(0);
    }
    if (!strcmp(how, "helpers"))
        for (int i = 0; i < 20; i++)
            if (system("true"))
                return 1;
    if (!strcmp(how, "process"))
        bind_to(rank);
    if (!strcmp(how, "swapped"))
        bind_to(!rank);
    if (!strcmp(how, "reads"))
        read_input();
    if (rank == 0)
        end();
    if (!strcmp(how, "two") || !strcmp(how, "bound"))
        two_threads();
    else
        work(0.15);
    if (servant)
        waitpid(servant, NULL, 0);
    if (rank == 0 && !strcmp(how, "fails"))
        fprintf(stderr, "Warning: slow\nError: the solver diverged in step 7\n");
    else if (rank == 0)
        printf("Rate: %d.%d GF/s\n", 10, getpid());
    fflush(stdout);
    if (!strcmp(how, "quits"))
        _exit(0);
    MPI_Finalize();
    if (!strcmp(how, "vanishes"))
        syscall(SYS_exit_group, 0);
    if (!strcmp(how, "finalized"))
        _exit(0);
    return 0;
}
