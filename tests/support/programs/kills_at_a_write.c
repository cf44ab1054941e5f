/* Kills its process at write number KILL_AT; of Python's libraries only SQLite writes so. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
static void count(void) {
    static long left = -1;
    if (left < 0)
        left = atol(getenv("KILL_AT"));
    if (--left == 0)
        raise(SIGKILL);
}
ssize_t pwrite64(int file, const void *text, size_t size, off64_t place) {
    count();
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return real(file, text, size, place);
}
int fdatasync(int file) {
    count();
    return 0;
}
