/* Ends as in the handler of a signal that interrupted malloc, which then must not be called again. */
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
static int inside;
void free(void *block) {
    (void)block;
}
void *malloc(size_t size) {
    static char memory[1 << 20];
    static size_t used;
    if (inside)
        syscall(SYS_exit_group, 9);
    used += (size + 15) / 16 * 16;
    return memory + used - (size + 15) / 16 * 16;
}
int main(void) {
    inside = 1;
    _exit(0);
}
