/* So many events of a kind, then so many rounds of work. */
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
static void *nothing(void *x) {
    return x;
}
int main(int argc, char **argv) {
    for (long n = atol(argv[2]); n > 0; n--) {
        if (!strcmp(argv[1], "process")) {
            pid_t child;
            extern char **environ;
            if (posix_spawn(&child, "/bin/true", 0, 0, (char *[]){"true", 0}, environ) ||
                waitpid(child, 0, 0) < 0)
                return 1;
        } else if (!strcmp(argv[1], "thread")) {
            pthread_t thread;
            if (pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0))
                return 1;
        } else if (!strcmp(argv[1], "free")) {
            free(*(void *volatile *)&(void *){malloc(64)});
        }
    }
    for (volatile long work = argc > 3 ? atol(argv[3]) : 0; work > 0; work--)
        ;
    return 0;
}
