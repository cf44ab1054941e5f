/* As Darshan writes its file. */
#include <sys/syscall.h>
#include <unistd.h>
void _exit(int status) {
    write(2, "tool ", 5);
    for (;;)
        syscall(SYS_exit_group, status);
}
