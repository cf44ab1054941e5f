/* How a program can end; the argument chooses. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *call_exit(void *unused) {
    (void)unused;
    exit(5);
}
static int main_is_gone(void) { /* a zombie until its threads have ended */
    char text[256] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    if (fgets(text, sizeof text, file) == NULL)
        exit(98);
    fclose(file);
    return strstr(text, ") Z ") != NULL;
}
static void *outlive(void *unused) {
    (void)unused;
    char *block = malloc(4 << 20);
    memset(block, 1, 4 << 20);
    while (!main_is_gone())
        usleep(1000);
    __asm__ volatile("" : : "r"(block) : "memory");
    exit(6);
}
static void at_exit(void) {
    fputs("handler ran\n", stderr);
}
int main(int argc, char **argv) {
    const char *way = argv[1];
    pthread_t thread;
    (void)argc;
    atexit(at_exit);
    if (!strcmp(way, "return"))
        return 4;
    if (!strcmp(way, "_exit"))
        _exit(0);
    if (!strcmp(way, "_Exit"))
        _Exit(0);
    if (!strcmp(way, "error"))
        _exit(3);
    if (!strcmp(way, "call"))
        syscall(SYS_exit_group, 0);
    if (!strcmp(way, "abort"))
        abort();
    if (!strcmp(way, "thread")) {
        pthread_create(&thread, NULL, call_exit, NULL);
        pthread_join(thread, NULL);
    }
    if (!strcmp(way, "main-gone")) {
        pthread_create(&thread, NULL, outlive, NULL);
        pthread_exit(NULL);
    }
    if (!strcmp(way, "fork")) {
        if (fork() == 0)
            exit(3);
        if (fork() == 0)
            execl("/bin/true", "true", (char *)NULL);
        wait(NULL);
        wait(NULL);
        return 0;
    }
    if (!strcmp(way, "exec"))
        execl(argv[0], argv[0], "return", (char *)NULL);
    if (!strcmp(way, "chdir"))
        return chdir("/");
    if (!strcmp(way, "name"))
        prctl(PR_SET_NAME, "a\"b\\\n)\xc3\xa9\xff(");
    if (!strcmp(way, "environment")) {
        clearenv();
        setenv("PLUMB_WITNESS_DIR", "/nowhere", 1);
    }
    return 0;
}
