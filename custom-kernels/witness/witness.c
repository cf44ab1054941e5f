/* Start and end of the witness.
 *
 * The process that the binder became is the root of its rank; the programs that it starts inherit the library
 * and write documents of their own, as do children that fork without exec.
 *
 * The constructor of a preloaded library runs after those of the libraries that the program is linked with,
 * its destructor before theirs: at that moment the workers of an OpenMP library are still parked. The
 * destructor runs on return from main and on exit(), not on _exit() or a signal: such a process leaves no
 * witness, and that is how its end is noticed. */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PATH_BYTES 4096

static pid_t owner; /* 0: this process is not to be witnessed */
static pid_t parent;
static pid_t root; /* the process that the binder became: this one, or an ancestor */
static bool forked;
static char directory[PATH_BYTES];
static char program[PATH_BYTES];
static const char *plan = "null";
static struct utsname host;
static struct json document;
static atomic_flag written = ATOMIC_FLAG_INIT;

bool witness_is_mine(void) {
    return owner != 0 && getpid() == owner;
}

bool witness_is_root(void) {
    return owner != 0 && owner == root && getpid() == owner;
}

void *witness_room(size_t bytes) {
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room == MAP_FAILED ? NULL : room;
}

static void complain(const char *path, int fault) {
    char line[PATH_BYTES + 512];
    int length = snprintf(line, sizeof line, "plumbwitness: cannot write %s: %s\n", path, strerror(fault));
    if (length > 0) {
        size_t bytes = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
        ssize_t ignored = write(STDERR_FILENO, line, bytes);
        (void)ignored;
    }
}

static bool is_chosen(void) {
    const char *pid = getenv("PLUMB_WITNESS_PID");
    const char *folder = getenv("PLUMB_WITNESS_DIR");
    root = pid == NULL ? 0 : (pid_t)strtol(pid, NULL, 10);
    return root > 0 && folder != NULL && folder[0] != '\0';
}

/* Absolute, because the program may change its folder before it ends. */
static bool remember_directory(void) {
    const char *folder = getenv("PLUMB_WITNESS_DIR");
    size_t used = 0;
    if (folder[0] != '/' && getcwd(directory, sizeof directory - 1) != NULL) {
        used = strlen(directory);
        directory[used++] = '/';
    }
    if (used + strlen(folder) >= sizeof directory) {
        complain(folder, ENAMETOOLONG);
        return false;
    }
    memcpy(directory + used, folder, strlen(folder) + 1);
    return true;
}

/* Copied, because the program may change its environment. */
static void remember_plan(void) {
    const char *text = getenv("PLUMB_PLAN");
    if (text == NULL || text[0] != '{')
        return;
    char *copy = witness_room(strlen(text) + 1);
    if (copy != NULL)
        plan = memcpy(copy, text, strlen(text) + 1);
}

static void remember_program(void) {
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
}

/* In a child, from now on a process of its own. */
static void after_fork(void) {
    owner = getpid();
    parent = getppid();
    forked = true;
    atomic_flag_clear(&written);
    usage_start();
    window_begin();
    threads_forget();
    freed_forget();
    transports_forget();
    library_forget();
    scheduling_start();
}

static __attribute__((constructor)) void start(void) {
    int saved = errno;
    if (is_chosen() && remember_directory()) {
        owner = getpid();
        parent = getppid();
        pthread_atfork(NULL, NULL, after_fork);
        remember_plan();
        remember_program();
        uname(&host);
        rank_start();
        devices_start();
        threads_start();
        scheduling_start();
        usage_start();
        window_begin();
        if (owner == root)
            waiting_start(directory, host.nodename, owner);
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
    json_text(&document, "host", host.nodename);
    json_int(&document, "pid", owner);
    json_int(&document, "parent", parent);
    write_ancestors(&document);
    json_int(&document, "root", root);
    json_bool(&document, "forked", forked);
    rank_write(&document);
    json_text(&document, "program", program);
    json_raw(&document, "plan", plan);
    devices_write(&document);
    window_end();
    usage_write(&document); /* first: what follows would count as the program's */
    window_write(&document);
    threads_write_start(&document);
    threads_write(&document);
    memory_write(&document);
    scheduling_write_end(&document);
    library_write(&document, forked);
    settings_write(&document);
    objects_write(&document, program);
    transports_write(&document);
    json_close(&document, '}');
    return json_finish(&document);
}

/* Complete under its final name or not there at all. */
static int write_file(const char *path, const char *temporary) {
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno;
    int fault = write_document(fd);
    if (close(fd) != 0 && fault == 0)
        fault = errno;
    if (fault == 0 && rename(temporary, path) != 0)
        fault = errno;
    if (fault != 0)
        unlink(temporary);
    return fault;
}

static __attribute__((destructor)) void finish(void) {
    static char path[PATH_BYTES + 512];
    static char temporary[PATH_BYTES + 512];
    if (!witness_is_mine() || atomic_flag_test_and_set(&written))
        return;
    int saved = errno;
    freed_stop();
    snprintf(path, sizeof path, "%s/%s.%ld.json", directory, host.nodename, (long)owner);
    snprintf(temporary, sizeof temporary, "%s.part", path);
    int fault = write_file(path, temporary);
    if (fault != 0)
        complain(path, fault);
    errno = saved;
}
