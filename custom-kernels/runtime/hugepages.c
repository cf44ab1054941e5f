#include "hugepages.h"

#include "first_touch.h"
#include "procfile.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

size_t huge_page_bytes(void) {
    char text[32];
    bool known = read_text("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text);
    return known ? strtoul(text, NULL, 10) : 0;
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
    size_t kib = number_behind("/proc/self/smaps_rollup", "\nAnonHugePages:");
    return kib == SIZE_MAX ? 0 : kib << 10;
}
