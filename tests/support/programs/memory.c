/* Every way to hold large memory and give it back; the argument chooses. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define MIB (1L << 20)
static char *touched(void *block, long bytes) {
    if (block == NULL || block == MAP_FAILED)
        exit(99);
    for (long i = 0; i < bytes; i += 4096)
        ((volatile char *)block)[i] = 1;
    return block;
}
static void *map(int flags, int fd, long bytes) {
    return mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}
static int file(const char *path, long bytes) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
    if (fd < 0 || ftruncate(fd, bytes) != 0)
        exit(98);
    return fd;
}
int main(int argc, char **argv) {
    const char *way = argv[1];
    (void)argc;
    if (!strcmp(way, "free")) {
        free(touched(malloc(8 * MIB), 8 * MIB));
    } else if (!strcmp(way, "realloc")) {
        char *block = touched(malloc(8 * MIB), 8 * MIB);
        block = realloc(block, 16);
        free(block);
    } else if (!strcmp(way, "munmap")) {
        munmap(touched(map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 8 * MIB), 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "munmap-shared")) {
        munmap(touched(map(MAP_SHARED | MAP_ANONYMOUS, -1, 8 * MIB), 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "munmap-parts")) {
        char *block = touched(map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 8 * MIB), 8 * MIB);
        munmap(block, 2 * MIB);
        munmap(block + 6 * MIB, 2 * MIB);
        munmap(block + 2 * MIB, 4 * MIB);
    } else if (!strcmp(way, "mremap")) {
        char *block = touched(map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 4 * MIB), 4 * MIB);
        block = mremap(block, 4 * MIB, 8 * MIB, MREMAP_MAYMOVE);
        munmap(touched(block, 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "half")) {
        char *block = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 8 * MIB);
        madvise(block, 8 * MIB, MADV_NOHUGEPAGE);
        touched(block, 4 * MIB);
        munmap(block, 8 * MIB);
    } else if (!strcmp(way, "keep")) {
        touched(malloc(8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "keep-shared")) {
        touched(map(MAP_SHARED | MAP_ANONYMOUS, -1, 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "small")) {
        for (int i = 0; i < 4; i++)
            touched(malloc(100 << 10), 100 << 10);
    } else if (!strcmp(way, "segment")) { /* what MPI libraries make for their ranks */
        touched(map(MAP_SHARED, file(argv[2], 8 * MIB), 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "segment-gone")) {
        munmap(touched(map(MAP_SHARED, file(argv[2], 8 * MIB), 8 * MIB), 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "memfd-gone")) {
        int fd = memfd_create("segment", 0);
        if (ftruncate(fd, 8 * MIB) != 0)
            return 97;
        munmap(touched(map(MAP_SHARED, fd, 8 * MIB), 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "segment-over-block")) { /* mapped over a known block: no longer anonymous */
        char *block = touched(map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 8 * MIB), 8 * MIB);
        mmap(block, 8 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file(argv[2], 8 * MIB), 0);
        munmap(touched(block, 8 * MIB), 8 * MIB);
    } else if (!strcmp(way, "loop")) {
        for (int i = 0; i < 20000; i++)
            free(touched(malloc(2 * MIB), 4096));
    } else if (!strcmp(way, "many")) {
        char *block[300];
        for (int i = 0; i < 300; i++)
            block[i] = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, 2 * MIB);
        for (int i = 0; i < 300; i++)
            munmap(touched(block[i], 4096), 2 * MIB);
    } else {
        return 96;
    }
    return 0;
}
