#include "jobs.h"

#include "child.h"
#include "fail.h"
#include "gpus.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The script beside this program, or the one that is installed. */
static const char *script(void) {
    const char *own = beside("health.sh");
    return access(own, X_OK) == 0 ? own : HEALTH_SCRIPT;
}

/* Starts the script in a group of its own, its output in the pipe. */
static pid_t start(const char *path, const char *scheduler, const char *node, int output) {
    pid_t child = fork();
    if (child != 0)
        return child;
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    execl(path, path, scheduler, "jobs", node, (char *)NULL);
    _exit(EXIT_NOT_FOUND);
}

/* Reads until the end of the output or the deadline; false at the deadline. */
static bool read_until(int input, double deadline, char *answer, size_t size) {
    size_t used = 0;
    for (;;) {
        double left = deadline - clock_s(CLOCK_MONOTONIC);
        struct pollfd wanted = {input, POLLIN, 0};
        if (left <= 0.0 || poll(&wanted, 1, (int)(left * 1e3) + 1) == 0)
            return false;
        char some[512];
        ssize_t got = read(input, some, sizeof some);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        for (ssize_t at = 0; at < got && used + 1 < size; at++)
            answer[used++] = some[at];
    }
    answer[used] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    return true;
}

enum jobs jobs_ask(const struct class *class, const char *node, double seconds, const char **said) {
    char answer[256] = "";
    int ends[2], status = 0;
    *said = "";
    if (!class->scheduler)
        return NO_JOBS;
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("no pipe: %s", strerror(errno));
    const char *path = script();
    double deadline = clock_s(CLOCK_MONOTONIC) + seconds;
    pid_t child = start(path, class->scheduler, node, ends[1]);
    close(ends[1]);
    bool ended = child > 0 && read_until(ends[0], deadline, answer, sizeof answer);
    close(ends[0]);
    if (child > 0 && !ended)
        kill(-child, SIGKILL);
    if (child > 0)
        waitpid(child, &status, 0);
    if (child < 0 || !ended) {
        *said = text("%s did not answer within %g s", path, seconds);
        return JOBS_UNKNOWN;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) {
        *said = text("%s", answer);
        return WEXITSTATUS(status) ? JOBS : NO_JOBS;
    }
    *said = text("%s failed%s%s", path, *answer ? ": " : "", answer);
    return JOBS_UNKNOWN;
}
