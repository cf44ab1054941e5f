/* Where a process that does not end waits. On WITNESS_ASK every thread appends a line to a file: rank, number
 * of the thread, and the MPI function that it is in, "-" outside of MPI, with peer and tag where calls.c
 * knows them. It does so on SIGTERM too, before it ends as it would have: launchers send SIGTERM to the ranks
 * of other nodes, which the driver cannot ask.
 *
 * The driver asks when the time limit is over, so no measurement is slowed down. Unwinding and dladdr are not
 * on the list of async-signal-safe functions: dladdr takes the dynamic linker's lock, which is held for no
 * longer than a library takes to load. At worst there is no line, and SIGKILL ends the process. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "witness.h"

#define DEEPEST 512
#define OTHERS_NANOSECONDS 20000000L /* for the lines of the other threads, before SIGTERM ends them all */

static char path[PRELOAD_PATH_BYTES];
static pid_t own; /* the process that answers: children inherit the handlers */
static atomic_flag asked = ATOMIC_FLAG_INIT;

struct walk {
    const char *function; /* the outermost MPI function so far: what the program called */
    int depth;
};

/* The name as in the standard, without the P of the profiling interface; NULL for other functions. Fortran's
 * names are in small letters. */
static const char *mpi_name(const char *symbol) {
    const char *name = symbol + (symbol[0] == 'P' || symbol[0] == 'p');
    return !strncmp(name, "MPI_", 4) || !strncmp(name, "mpi_", 4) ? name : NULL;
}

/* Intel MPI's entry points of MPI_Send and others are a jump to a function without a name, 16 bytes behind.
 */
static const char *name_before(uintptr_t function) {
#if defined(__x86_64__)
    static const unsigned char jump[] = {0xeb, 0x0e};
    void *entry = (void *)(function - 16);
    Dl_info where;
    if (function != 0 && dladdr(entry, &where) != 0 && where.dli_sname != NULL && where.dli_saddr == entry &&
        !memcmp(entry, jump, sizeof jump)) {
        return mpi_name(where.dli_sname);
    }
#else
    (void)function;
#endif
    return NULL;
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *argument) {
    struct walk *walk = argument;
    int before_instruction = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &before_instruction);
    /* A return address may lie behind the end of a function that does not return. */
    void *inside = (void *)(before_instruction ? address : address - 1);
    Dl_info where;
    if (address != 0 && dladdr(inside, &where) != 0) {
        const char *name = where.dli_sname != NULL ? mpi_name(where.dli_sname)
                                                   : name_before(_Unwind_GetRegionStart(context));
        walk->function = name != NULL ? name : walk->function;
    }
    return ++walk->depth < DEEPEST ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static size_t put_text(char *line, size_t at, size_t room, const char *text) {
    while (*text != '\0' && at < room)
        line[at++] = *text++;
    return at;
}

static size_t put_number(char *line, size_t at, long number) {
    char digits[24];
    if (number < 0) /* no launcher reported the rank */
        return put_text(line, at, at + 1, "-");
    int first = (int)sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(line + at, digits + first, sizeof digits - (size_t)first);
    return at + sizeof digits - (size_t)first;
}

/* " to 1 tag 7". A call that waits has a negative rank or tag only where it is the library's constant for
 * any. */
static size_t put_peer(char *line, size_t at, size_t room, const char *word, const struct peer *peer) {
    if (!peer->given)
        return at;
    at = put_text(line, at, room, word);
    at = peer->rank < 0 ? put_text(line, at, room, "any") : put_number(line, at, peer->rank);
    at = put_text(line, at, room, " tag ");
    return peer->tag < 0 ? put_text(line, at, room, "any") : put_number(line, at, peer->tag);
}

/* One write of a whole line: those of other threads do not mix with it. */
static void append_line(const char *function) {
    char line[240];
    size_t used = put_number(line, 0, rank_number());
    used = put_text(line, used, sizeof line - 1, " ");
    used = put_number(line, used, syscall(SYS_gettid));
    used = put_text(line, used, sizeof line - 1, " ");
    used = put_text(line, used, sizeof line / 2, function != NULL ? function : "-");
    const struct call *call = function != NULL ? calls_last(function) : NULL;
    if (call != NULL) {
        used = put_peer(line, used, sizeof line - 1, " to ", &call->to);
        used = put_peer(line, used, sizeof line - 1, " from ", &call->from);
    }
    line[used++] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
        ssize_t ignored = write(fd, line, used);
        (void)ignored;
        close(fd);
    }
}

static void ask_other(const char *tid, void *unused) {
    (void)unused;
    pid_t other = (pid_t)atoi(tid);
    if (other != (pid_t)syscall(SYS_gettid))
        syscall(SYS_tgkill, own, other, WITNESS_ASK);
}

static void write_own_line(void) {
    struct walk walk = {NULL, 0};
    _Unwind_Backtrace(look_at_frame, &walk);
    append_line(walk.function);
}

/* Lines of all threads; once. */
static void write_lines(void) {
    if (!atomic_flag_test_and_set(&asked)) {
        write_own_line();
        threads_visit(ask_other, NULL);
    }
}

static void answer(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    int saved = errno;
    if (getpid() == own && info->si_pid == own) /* asked by the thread that was asked first */
        write_own_line();
    else if (getpid() == own)
        write_lines();
    errno = saved;
}

/* SA_RESETHAND has restored the default: the signal raised here ends the process when the handler returns. */
static void answer_and_end(int number) {
    const struct timespec pause = {0, OTHERS_NANOSECONDS};
    if (getpid() == own) {
        write_lines();
        nanosleep(&pause, NULL);
    }
    raise(number);
}

bool waiting_answers(const struct sigaction *action) {
    return action->sa_sigaction == answer || action->sa_handler == answer_and_end;
}

static void answer_on_termination(void) {
    struct sigaction present, action = {.sa_handler = answer_and_end, .sa_flags = SA_RESETHAND | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGTERM, NULL, &present) == 0 && present.sa_handler == SIG_DFL)
        sigaction(SIGTERM, &action, NULL);
}

void waiting_start(void) {
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    preload_name(path, ".waiting");
    own = getpid();
    sigemptyset(&action.sa_mask);
    sigaction(WITNESS_ASK, &action, NULL);
    answer_on_termination();
}
