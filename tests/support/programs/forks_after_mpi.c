#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
int MPI_Init(int *, char ***), MPI_Finalize(void);
int main(void) {
    char one = 1, other;
    struct iovec to = {&other, 1}, from = {&one, 1};
    int file = memfd_create("shared", 0);
    if (MPI_Init(NULL, NULL) != 0 || ftruncate(file, 1 << 20) != 0)
        return 1;
    void *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
        return 2;
    MPI_Finalize();
    munmap(block, 1 << 20);
    if (fork() == 0)
        exit(0);
    return wait(NULL) < 0;
}
