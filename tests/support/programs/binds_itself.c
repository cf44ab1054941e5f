/* Binds itself in a thread with the smallest stack, with a mask of which the size is too large, before a page
 * of nobody. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *bind(void *unused) {
    static unsigned char mask[8192];
    long page = sysconf(_SC_PAGESIZE), bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *copy = memcpy(pages + 2 * page - bytes, mask, bytes);
    if (mprotect(pages + 2 * page, page, PROT_NONE))
        return pages;
    return sched_setaffinity(0, bytes + 64, (void *)copy) ? pages : unused;
}
int main(void) {
    pthread_t thread;
    pthread_attr_t small;
    void *fault = NULL;
    pthread_attr_init(&small);
    if (pthread_attr_setstacksize(&small, 16384) || pthread_create(&thread, &small, bind, NULL))
        return 2;
    pthread_join(thread, &fault);
    return fault != NULL;
}
