/* For a library that is preloaded and writes a document on its process: who the process is, where its files
 * go, how they are written. No malloc, no stdio streams: the program's own may be half torn down. */
#ifndef PLUMB_PRELOAD_H
#define PLUMB_PRELOAD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/utsname.h>

enum { PRELOAD_PATH_BYTES = 4608 };

extern struct preload {
    pid_t owner; /* the process that the document is on; 0: none */
    char directory[4096], program[4096];
    struct utsname host;
    bool quiet; /* nothing is written to stderr */
} preload;

/* The document is on this process, its files go to `folder`. False, after a line on stderr: the path is too
 * long. */
bool preload_start(const char *folder);
/* True in that process, but not between vfork and exec, where a child shares its parent's memory. */
bool preload_is_mine(void);
/* DIRECTORY/HOST.PID and `ending`. */
void preload_name(char path[PRELOAD_PATH_BYTES], const char *ending);
/* Between the two, a write beyond RLIMIT_FSIZE is an error, and no SIGXFSZ ends the program. */
struct preload_held {
    sigset_t too_large, mask;
    bool pending;
};
void preload_hold(struct preload_held *held);
void preload_release(const struct preload_held *held);
/* `write_document` gives 0 or an errno; ECANCELED: the file is not wanted any more. The file appears complete
 * under its name or not at all; false, after a line on stderr, if it does not. Keeps errno. */
bool preload_write(const char *path, const char *temporary, int (*write_document)(int fd));
/* A line on stderr, which begins with the library's name (PRELOAD_LIBRARY, which its build defines). */
__attribute__((format(printf, 1, 2))) void preload_complain(const char *format, ...);
/* Zeroed memory that is never freed; NULL if there is none. */
void *preload_room(size_t bytes);

#endif
