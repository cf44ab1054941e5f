#include "hugepages.h"

#include "memory.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

size_t huge_page_bytes(void) {
    size_t bytes = 0;
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%zu", &bytes) != 1)
        bytes = 0;
    fclose(file);
    return bytes;
}

void *memory_take_huge(size_t bytes) {
    size_t page = huge_page_bytes();
    if (bytes < page || page == 0)
        return memory_take(bytes);
    /* Whole small pages, so that the surplus at both ends can be unmapped. */
    size_t small = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + small - 1) / small * small;
    char *start = memory_take(whole + page);
    size_t ahead = (page - (uintptr_t)start % page) % page;
    if (ahead)
        munmap(start, ahead);
    munmap(start + ahead + whole, page - ahead);
    madvise(start + ahead, whole, MADV_HUGEPAGE);
    return start + ahead;
}

size_t huge_pages_used(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    size_t kib = 0;
    char line[256];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib << 10;
}
