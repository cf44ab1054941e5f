#include "gpus.h"

#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char wrong[] = "wrong result: ";

static pid_t process;
static FILE *asked, *answers;
static const char *without;

bool gpus_driven(void) {
    return access("/proc/driver/nvidia/version", F_OK) == 0 || access("/dev/nvidiactl", F_OK) == 0;
}

const char *beside(const char *name) {
    char here[4096];
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    here[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(here, '/');
    return text("%.*s/%s", (int)(slash ? slash - here : 0), here, name);
}

static _Noreturn void become(const char *path, int input, int output) {
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO); /* its last line says why it ends */
    execl(path, GPUS_PROGRAM, (char *)NULL);
    dprintf(STDOUT_FILENO, "%s: %s\n", path, strerror(errno));
    _exit(1);
}

void gpus_start(void) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        fail("no pipe: %s", strerror(errno));
    process = fork();
    if (process < 0)
        fail("no process: %s", strerror(errno));
    if (process == 0)
        become(beside(GPUS_PROGRAM), in[0], out[1]);
    signal(SIGPIPE, SIG_IGN);
    close(in[0]);
    close(out[1]);
    asked = fdopen(in[1], "w");
    answers = fdopen(out[0], "r");
    if (!asked || !answers)
        fail("no pipe: %s", strerror(errno));
}

/* The next line, without its end; NULL after the last one. */
static char *next_line(void) {
    static char line[512];
    if (!fgets(line, sizeof line, answers))
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static void give_up(const char *why) {
    without = text("GPUs cannot be measured: %s", why ? why : GPUS_PROGRAM " ended without a word");
    gpus_end();
}

void gpus_wait(void) {
    if (process <= 0)
        return;
    const char *line = next_line();
    if (!line || strcmp(line, "ready") != 0)
        give_up(line);
}

/* "gpu.in 55.1 0 gpu.out ...": false for another line. */
static bool read_rates(const char *line, struct round *round) {
    char figure[32];
    double value;
    int number, used;
    while (sscanf(line, "%31s %lf %d%n", figure, &value, &number, &used) == 3) {
        enum figure found = figure_named(figure);
        if (found == FIGURES)
            return false;
        round->of[found] = (struct reading){true, value, {number, -1}};
        line += used;
    }
    return *line == '\0';
}

const char *gpus_round(struct round *round) {
    if (process <= 0)
        return NULL;
    fputs("next\n", asked);
    fflush(asked);
    const char *line = next_line();
    if (line && !strncmp(line, wrong, strlen(wrong)))
        return text("%s", line);
    if (!line || !read_rates(line, round))
        give_up(line);
    return NULL;
}

const char *gpus_without(void) {
    return without;
}

void gpus_end(void) {
    if (process <= 0)
        return;
    fclose(asked);
    fclose(answers);
    waitpid(process, NULL, 0);
    process = 0;
}
