/* 8 MiB in huge pages, or in small ones if there is an argument. */
#include <string.h>
#include <sys/mman.h>
#define MIB (1l << 20)
int main(int argc, char **argv) {
    (void)argv;
    char *block = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED || madvise(block, 16 * MIB, argc > 1 ? MADV_NOHUGEPAGE : MADV_HUGEPAGE))
        return 1;
    memset(block + 4 * MIB, 1, 8 * MIB);
    return 0;
}
