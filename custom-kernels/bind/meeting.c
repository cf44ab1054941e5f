#include "meeting.h"

#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 60 };

/* The file: how many ranks meet, and how many are there. */
struct meeting {
    uint32_t expected;
    _Atomic uint32_t arrived;
};

static struct meeting *open_meeting(const char *path) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
        fail("barrier %s: %s", path, strerror(errno));
    if (status.st_size != sizeof(struct meeting))
        fail("barrier %s: not a file of %zu bytes", path, sizeof(struct meeting));
    void *mapped = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        fail("barrier %s: %s", path, strerror(errno));
    close(file);
    return mapped;
}

/* Ranks sleep: one that turned would take CPU time of the other side where both share a core's hardware. */
void meet(const char *path) {
    struct meeting *meeting = open_meeting(path);
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += PATIENCE_S;
    uint32_t arrived = atomic_fetch_add(&meeting->arrived, 1) + 1;
    if (arrived == meeting->expected)
        syscall(SYS_futex, &meeting->arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    while (arrived < meeting->expected) {
        if (syscall(SYS_futex, &meeting->arrived, FUTEX_WAIT_BITSET, arrived, &deadline, NULL,
                    FUTEX_BITSET_MATCH_ANY) != 0 &&
            errno == ETIMEDOUT)
            fail("barrier %s: %u of %u ranks were there after %d s", path, arrived, meeting->expected,
                 PATIENCE_S);
        arrived = atomic_load(&meeting->arrived);
    }
    munmap(meeting, sizeof *meeting);
}
