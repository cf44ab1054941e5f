#include "child.h"

#include "fail.h"
#include "gpus.h"
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind { ROUND, CANNOT, WRONG };

/* What the child sends: small enough to be written in one piece. */
struct message {
    enum kind kind;
    struct round round;
    char text[256];
};

double clock_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void send_message(int output, enum kind kind, const struct round *round, const char *said) {
    struct message message;
    memset(&message, 0, sizeof message); /* also between the members: all of it is written */
    message.kind = kind;
    if (round)
        message.round = *round;
    snprintf(message.text, sizeof message.text, "%s", said ? said : "");
    if (write(output, &message, sizeof message) != (ssize_t)sizeof message)
        _exit(1);
}

static _Noreturn void measure(const struct class *class, bool gpus, int planned, int output) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *why = measure_start(class, gpus);
    if (why)
        send_message(output, CANNOT, NULL, why);
    for (int number = 0; !why && number < planned; number++) {
        struct round round;
        bool wrong;
        const char *said = measure_round(&round, &wrong);
        if (said) {
            send_message(output, wrong ? WRONG : CANNOT, NULL, said);
            break;
        }
        send_message(output, ROUND, &round, gpus_without());
    }
    gpus_end();
    _exit(0);
}

/* The next message; 0 at the end of them, -1 at the deadline. */
static int receive(int input, double deadline, struct message *message) {
    size_t used = 0;
    while (used < sizeof *message) {
        double left = deadline - clock_s(CLOCK_MONOTONIC);
        struct pollfd wanted = {input, POLLIN, 0};
        if (left <= 0.0 || poll(&wanted, 1, (int)(left * 1e3) + 1) == 0)
            return -1;
        ssize_t got = read(input, (char *)message + used, sizeof *message - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        used += (size_t)got;
    }
    return 1;
}

static const char *end_of(int status, int count, int planned) {
    if (WIFSIGNALED(status))
        return text("measuring was ended by signal %d (%s) after %d of %d rounds", WTERMSIG(status),
                    strsignal(WTERMSIG(status)), count, planned);
    return count < planned ? text("measuring ended after %d of %d rounds", count, planned) : NULL;
}

void child_measure(struct measured *measured, const struct class *class, bool gpus, int planned,
                   double deadline, bool (*look)(void *context), void *context) {
    static struct message message;
    int ends[2], got, status = 0;
    measured->count = 0;
    measured->found = measured->ended = measured->without_gpus = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("no pipe: %s", strerror(errno));
    measured->process = fork();
    if (measured->process == 0) {
        close(ends[0]);
        measure(class, gpus, planned, ends[1]);
    }
    close(ends[1]);
    if (measured->process < 0)
        fail("no process: %s", strerror(errno));
    const char *said = NULL;
    while (!said && (got = receive(ends[0], deadline, &message)) > 0) {
        if (message.kind == ROUND) {
            measured->rounds[measured->count++] = message.round;
            if (*message.text && !measured->without_gpus)
                measured->without_gpus = text("%s", message.text);
            if (message.round.others > MOST_OTHERS && !look(context))
                said = "a job has begun: measuring was ended";
        } else {
            said = text("%s", message.text);
            measured->found = message.kind == WRONG ? said : NULL;
        }
    }
    close(ends[0]);
    if (got < 0)
        said = text("the time was over after %d of %d rounds", measured->count, planned);
    if (got != 0)
        kill(measured->process, SIGKILL);
    waitpid(measured->process, &status, 0);
    measured->ended = measured->found ? NULL : said ? said : end_of(status, measured->count, planned);
}
