#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct preload preload;

void preload_complain(const char *format, ...) {
    if (preload.quiet)
        return;
    char line[PRELOAD_PATH_BYTES + 512];
    size_t used = sizeof PRELOAD_LIBRARY ": " - 1, room = sizeof line - 1 - used;
    memcpy(line, PRELOAD_LIBRARY ": ", used);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, room, format, arguments);
    va_end(arguments);
    if (length > 0) {
        used += (size_t)length < room ? (size_t)length : room - 1;
        line[used] = '\n';
        ssize_t ignored = write(STDERR_FILENO, line, used + 1);
        (void)ignored;
    }
}

/* Absolute, because the program may change its folder before it ends. */
bool preload_start(const char *folder) {
    char *directory = preload.directory;
    size_t used = 0;
    if (folder[0] != '/' && getcwd(directory, sizeof preload.directory - 1) != NULL) {
        used = strlen(directory);
        directory[used++] = '/';
    }
    if (used + strlen(folder) >= sizeof preload.directory) {
        preload_complain("cannot write %s: %s", folder, strerror(ENAMETOOLONG));
        return false;
    }
    memcpy(directory + used, folder, strlen(folder) + 1);
    ssize_t length = readlink("/proc/self/exe", preload.program, sizeof preload.program - 1);
    preload.program[length > 0 ? length : 0] = '\0';
    uname(&preload.host);
    preload.owner = getpid();
    return true;
}

bool preload_is_mine(void) {
    return preload.owner != 0 && getpid() == preload.owner;
}

void preload_name(char path[PRELOAD_PATH_BYTES], const char *ending) {
    snprintf(path, PRELOAD_PATH_BYTES, "%s/%s.%ld%s", preload.directory, preload.host.nodename,
             (long)preload.owner, ending);
}

void preload_hold(struct preload_held *held) {
    sigset_t pending;
    sigemptyset(&held->too_large);
    sigaddset(&held->too_large, SIGXFSZ);
    held->pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &held->too_large, &held->mask);
}

void preload_release(const struct preload_held *held) {
    const struct timespec now = {0, 0};
    while (!held->pending && sigtimedwait(&held->too_large, NULL, &now) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &held->mask, NULL);
}

bool preload_write(const char *path, const char *temporary, int (*write_document)(int fd)) {
    struct preload_held held;
    preload_hold(&held);
    int saved = errno, fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int fault = fd < 0 ? errno : write_document(fd);
    if (fd >= 0 && close(fd) != 0 && fault == 0)
        fault = errno;
    if (fault == 0 && rename(temporary, path) != 0)
        fault = errno;
    if (fault != 0)
        unlink(temporary);
    if (fault != 0 && fault != ECANCELED)
        preload_complain("cannot write %s: %s", path, strerror(fault));
    preload_release(&held);
    errno = saved;
    return fault == 0;
}

void *preload_room(size_t bytes) {
    void *room =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return room == MAP_FAILED ? NULL : room;
}
