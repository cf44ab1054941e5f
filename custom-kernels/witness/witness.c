/* Start and end of the witness.
 *
 * The process that the binder became is the root of its rank; the programs that it starts inherit the library
 * and write their own documents, as do children that fork without exec. Without PLUMB_WITNESS_PID nothing of
 * ours started the processes: each writes a document, without a root, and the library keeps off their signals
 * and their stderr.
 *
 * The constructor of a preloaded library runs after those of the libraries that the program is linked with,
 * its destructor before theirs: at that moment the workers of an OpenMP library are still parked. The
 * destructor runs on return from main and on exit(), not on a signal: such a process leaves no witness, and
 * that is how its end is noticed. One that ends by _exit(0), as shells and Python's helpers do, leaves one
 * too, but not before MPI_Finalize. */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t parent;
static pid_t root; /* the process that the binder became: this one, or an ancestor; 0: there was no binder */
static bool forked;
static const char *plan = "null";
static struct json document;
static void finish(void);
static atomic_flag written = ATOMIC_FLAG_INIT;
static long most; /* documents in the folder of a job that is only observed; 0: no limit */
/* microseconds of CPU time, its own and that of its children, below which a process of such a job leaves none
 */
#define WORKED_MICROSECONDS 100000

static bool is_chosen(void) {
    const char *pid = getenv("PLUMB_WITNESS_PID");
    const char *folder = getenv("PLUMB_WITNESS_DIR");
    const char *limit = getenv("PLUMB_WITNESS_MOST");
    root = pid == NULL ? 0 : (pid_t)strtol(pid, NULL, 10);
    most = limit == NULL || root != 0 ? 0 : strtol(limit, NULL, 10);
    preload.quiet = most > 0;
    return (pid == NULL || root > 0) && folder != NULL && folder[0] != '\0';
}

/* Copied, because the program may change its environment. */
static void remember_plan(void) {
    const char *text = getenv("PLUMB_PLAN");
    if (text == NULL || text[0] != '{')
        return;
    char *copy = preload_room(strlen(text) + 1);
    if (copy != NULL)
        plan = memcpy(copy, text, strlen(text) + 1);
}

/* In a child, from now on a separate process. */
static void after_fork(void) {
    preload.owner = getpid();
    parent = getppid();
    forked = true;
    atomic_flag_clear(&written);
    usage_start(false);
    window_begin();
    excursions_forget();
    threads_forget();
    freed_forget();
    transports_forget();
    library_forget();
    scheduling_start();
}

static __attribute__((constructor)) void start(void) {
    int saved = errno;
    /* again, in the destructor: dlopen(3) of a library that is about to end begins it anew */
    if (preload.owner == 0 && is_chosen() && preload_start(getenv("PLUMB_WITNESS_DIR"))) {
        parent = getppid();
        pthread_atfork(NULL, NULL, after_fork);
        remember_plan();
        rank_start();
        devices_start();
        threads_start(plan);
        scheduling_start();
        usage_start(preload.owner == root);
        clocks_find(false);
        window_begin();
        if (preload.owner == root)
            waiting_start();
        hooks_watch_threads();
        if (hooks_resolve())
            freed_start();
    }
    errno = saved;
}

/* "PID (name) S PARENT ...": the name may hold anything. */
static long parent_of(long pid) {
    char file[32];
    char text[512];
    snprintf(file, sizeof file, "/proc/%ld/stat", pid);
    char *bracket = read_text(file, text, sizeof text) ? strrchr(text, ')') : NULL;
    return bracket == NULL || strlen(bracket) < 4 ? 0 : strtol(bracket + 3, NULL, 10);
}

/* The parent of this process now, its parent and so on: which processes are the launcher's. */
static void write_ancestors(struct json *out) {
    json_open(out, "ancestors", '[');
    for (long pid = getppid(); pid > 1; pid = parent_of(pid))
        json_int(out, NULL, pid);
    json_close(out, ']');
}

static int write_document(int fd) {
    json_start(&document, fd);
    json_open(&document, NULL, '{');
    json_int(&document, "schema", 1);
    json_text(&document, "host", preload.host.nodename);
    json_int(&document, "pid", preload.owner);
    json_int(&document, "parent", parent);
    write_ancestors(&document);
    json_int(&document, "root", root);
    json_bool(&document, "forked", forked);
    rank_write(&document);
    json_text(&document, "program", preload.program);
    json_raw(&document, "plan", plan);
    devices_write(&document);
    window_end();
    usage_write(&document); /* first: what follows would count as the program's */
    window_write(&document);
    threads_write_start(&document);
    threads_write(&document);
    memory_write(&document);
    scheduling_write_end(&document);
    const char *modules = most > 0 ? getenv("LOADEDMODULES") : NULL;
    if (modules != NULL)
        json_text(&document, "modules", modules);
    library_write(&document, forked);
    settings_write(&document);
    objects_write(&document, preload.program);
    transports_write(&document);
    json_close(&document, '}');
    return json_finish(&document);
}

/* A job of very many short processes must not fill a disk: its documents are counted by the bytes of a file.
 */
static bool is_wanted(void) {
    static char path[PRELOAD_PATH_BYTES];
    struct stat count;
    if (most <= 0 || (!forked && library_initialised()))
        return true;
    struct rusage children; /* of a launcher, or a script: those that it waited for */
    memset(&children, 0, sizeof children);
    getrusage(RUSAGE_CHILDREN, &children);
    if (cpu_microseconds() + cpu_time(&children) < WORKED_MICROSECONDS)
        return false;
    snprintf(path, sizeof path, "%s/.count", preload.directory);
    struct preload_held held;
    preload_hold(&held);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool room = fd >= 0 && write(fd, ".", 1) == 1 && fstat(fd, &count) == 0 && count.st_size <= most;
    if (fd >= 0)
        close(fd);
    preload_release(&held);
    return room;
}

void witness_exit(int status) {
    /* a handler of a signal ends with another status: what it interrupted may hold locks */
    if (status == 0 && preload_is_mine() && (forked || !library_running()))
        finish();
}

static __attribute__((destructor)) void finish(void) {
    static char path[PRELOAD_PATH_BYTES];
    static char temporary[PRELOAD_PATH_BYTES];
    if (!preload_is_mine() || atomic_flag_test_and_set(&written))
        return;
    int saved = errno;
    /* no folder: on another host, or after the command's end */
    if (root == 0 && (access(preload.directory, W_OK) != 0 || !is_wanted())) {
        errno = saved;
        return;
    }
    freed_stop();
    preload_name(path, ".json");
    preload_name(temporary, ".json.part");
    preload_write(path, temporary, write_document);
    errno = saved;
}
