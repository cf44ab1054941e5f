#include "first_touch.h"

#include "fail.h"
#include "procfile.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static size_t meminfo_available(void) {
    size_t kib = number_behind("/proc/meminfo", "\nMemAvailable:");
    return kib == SIZE_MAX ? kib : kib << 10;
}

/* A number from a file below /sys/fs/cgroup; SIZE_MAX for "max" and where there is no such file. */
static size_t cgroup_number(const char *group, const char *name) {
    char path[1200];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, name);
    return number_behind(path, "");
}

/* What the control group (version 2) and its parents leave. */
static size_t cgroup_available(void) {
    char text[1100], group[1024] = "";
    if (!read_text("/proc/self/cgroup", text, sizeof text) || sscanf(text, "0::%1023[^\n]", group) != 1)
        return SIZE_MAX;
    size_t least = SIZE_MAX;
    for (char *slash = group + strlen(group); slash; slash = strrchr(group, '/')) {
        *slash = '\0';
        size_t limit = cgroup_number(group, "memory.max"), used = cgroup_number(group, "memory.current");
        if (limit != SIZE_MAX && used != SIZE_MAX) {
            size_t left = limit > used ? limit - used : 0;
            least = left < least ? left : least;
        }
    }
    return least;
}

size_t memory_available(void) {
    size_t whole = meminfo_available(), group = cgroup_available();
    return whole < group ? whole : group;
}

void *memory_take(size_t bytes) {
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail("no address space for %zu bytes", bytes);
    return memory;
}

void memory_give_back(void *memory, size_t bytes) {
    munmap(memory, bytes);
}
