/* plumb-trace FILE -- PROGRAM ARG...: run a program and list the files that it and its children look at.
 *
 * Each entry of FILE is a letter, a text, a zero byte, the path as it was named, and a zero byte. The text
 * is that path without links, or that of a link which leads nowhere. F: a file or folder that was there when
 * a system call named it, or that the kernel loaded; L: a folder that was listed; W: a file that was opened
 * to be written alone; S: a socket that was connected to; X: what may look at files that are not listed. A
 * filter (seccomp) stops the processes at calls that take a path and nowhere else: static programs and calls
 * past the C library are seen too, and what computes runs at full speed. */
#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define ARCHITECTURE AUDIT_ARCH_PPC64LE
#elif defined(__riscv)
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#error "no number of this architecture"
#endif
/* beyond the numbers of every architecture; those of x32 programs are larger */
enum { MOST_CALLS = 0x40000000, FOREIGN = 1 };
/* where the folder of a relative path is: an argument, or the working folder */
enum { WORKING = -1, LISTS = -2, HIDES = -3, CLONES = -4, CONNECTS = -5 };

static const struct call {
    int number, folder, path, flags; /* places of arguments; flags -1: none */
} calls[] = {
#ifdef __NR_open
    {__NR_open, WORKING, 0, 1},
    {__NR_creat, WORKING, 0, -1},
    {__NR_stat, WORKING, 0, -1},
    {__NR_lstat, WORKING, 0, -1},
    {__NR_access, WORKING, 0, -1},
    {__NR_readlink, WORKING, 0, -1},
    {__NR_mkdir, WORKING, 0, -1},
    {__NR_rename, WORKING, 0, -1},
    {__NR_link, WORKING, 0, -1},
    {__NR_unlink, WORKING, 0, -1},
    {__NR_getdents, LISTS, 0, -1},
#endif
#ifdef __NR_newfstatat
    {__NR_newfstatat, 0, 1, -1},
#endif
#ifdef __NR_renameat
    {__NR_renameat, 0, 1, -1},
#endif
#ifdef __NR_openat2
    {__NR_openat2, 0, 1, -1},
#endif
#ifdef __NR_faccessat2
    {__NR_faccessat2, 0, 1, -1},
#endif
    {__NR_openat, 0, 1, 2},
    {__NR_statx, 0, 1, -1},
    {__NR_faccessat, 0, 1, -1},
    {__NR_readlinkat, 0, 1, -1},
    {__NR_mkdirat, 0, 1, -1},
    {__NR_renameat2, 0, 1, -1},
    {__NR_linkat, 0, 1, -1},
    {__NR_unlinkat, 0, 1, -1},
    {__NR_execve, WORKING, 0, -1},
    {__NR_execveat, 0, 1, -1},
    {__NR_chdir, WORKING, 0, -1},
    {__NR_truncate, WORKING, 0, -1},
    {__NR_statfs, WORKING, 0, -1},
    {__NR_getxattr, WORKING, 0, -1},
    {__NR_lgetxattr, WORKING, 0, -1},
    {__NR_listxattr, WORKING, 0, -1},
    {__NR_llistxattr, WORKING, 0, -1},
    {__NR_inotify_add_watch, WORKING, 1, -1},
    {__NR_getdents64, LISTS, 0, -1},
    {__NR_connect, CONNECTS, 1, -1},
    {__NR_clone, CLONES, 0, -1},
#ifdef __NR_clone3
    {__NR_clone3, CLONES, 0, -1},
#endif
#ifdef __NR_io_uring_setup
    {__NR_io_uring_setup, HIDES, 0, -1},
#endif
    {__NR_name_to_handle_at, HIDES, 0, -1},
    {__NR_open_by_handle_at, HIDES, 0, -1},
    {__NR_fanotify_init, HIDES, 0, -1},
    {__NR_unshare, HIDES, 0, -1},
    {__NR_setns, HIDES, 0, -1},
    {__NR_chroot, HIDES, 0, -1},
    {__NR_pivot_root, HIDES, 0, -1},
    {__NR_mount, HIDES, 0, -1},
    {__NR_ptrace, HIDES, 0, -1},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static FILE *list;

/* The C library's own header has neither all requests everywhere, nor peace with the kernel's. */
static long trace(long request, pid_t pid, unsigned long address, unsigned long data) {
    return syscall(__NR_ptrace, request, (long)pid, address, data);
}

static void note(char kind, const char *text, const char *named) {
    fprintf(list, "%c%s%c%s%c", kind, text, '\0', named, '\0');
}

/* In the program that begins: stop at the calls of the table, and at all of another architecture. */
static void filter(void) {
    struct sock_filter code[2 * CALLS + 7] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FOREIGN),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    unsigned short length = 4;
    for (int place = 0; place < CALLS; place++) {
        const unsigned number = (unsigned)calls[place].number;
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, MOST_CALLS, 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FOREIGN);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        fail("calls cannot be filtered: %s", strerror(errno));
}

/* The text at `address` of a process; false if it cannot be read. */
static bool read_path(pid_t pid, uint64_t address, char *path) {
    for (size_t filled = 0; filled < PATH_MAX; filled++) { /* to the end of a page at once */
        size_t room = 4096 - (address + filled) % 4096;
        room = room < PATH_MAX - filled ? room : PATH_MAX - filled;
        struct iovec here = {path + filled, room};
        struct iovec there = {(void *)(uintptr_t)(address + filled), room};
        if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)room)
            return false;
        if (memchr(path + filled, '\0', room) != NULL)
            return true;
        filled += room - 1;
    }
    return false;
}

/* What a path of a process names; `folder` is the descriptor that a relative one begins at. */
static void note_path(char kind, pid_t pid, int folder, const char *path) {
    char full[3 * PATH_MAX];
    char whole[3 * PATH_MAX + 32];
    char text[PATH_MAX];
    char name[64];
    if (folder == AT_FDCWD)
        snprintf(name, sizeof name, "/proc/%d/cwd", pid);
    else
        snprintf(name, sizeof name, "/proc/%d/fd/%d", pid, folder);
    if (path[0] == '/')
        snprintf(full, sizeof full, "%s", path);
    else
        snprintf(full, sizeof full, "%s/%s", realpath(name, text) != NULL ? text : name, path);
    const char *start = full + strspn(full, "/") - 1;
    const char *rest = strncmp(start, "/proc/self", 10) == 0          ? start + 10
                       : strncmp(start, "/proc/thread-self", 17) == 0 ? start + 17
                                                                      : NULL;
    if (rest != NULL)
        snprintf(whole, sizeof whole, "/proc/%d%s", pid, rest);
    else
        snprintf(whole, sizeof whole, "%s", start);
    const ssize_t length =
        realpath(whole, text) != NULL ? (ssize_t)strlen(text) : readlink(whole, text, sizeof text - 1);
    if (length < 0)
        return;
    text[length] = '\0';
    note(kind, text, whole);
}

/* Who answers at a socket with a name looks at files for the program; those of a network are of its ranks. */
static void note_socket(pid_t pid, const __u64 *arguments) {
    struct sockaddr_un address = {.sun_family = AF_UNSPEC};
    const size_t size = arguments[2] < sizeof address ? (size_t)arguments[2] : sizeof address;
    char path[sizeof address.sun_path + 1] = "";
    struct iovec here = {&address, size};
    struct iovec there = {(void *)(uintptr_t)arguments[1], size};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)size || address.sun_family != AF_UNIX)
        return;
    memcpy(path, address.sun_path, sizeof address.sun_path);
    if (path[0] == '\0')
        note('X', "by a socket that is no file", "");
    else
        note_path('S', pid, AT_FDCWD, path);
}

static void note_clone(pid_t pid, long number, const __u64 *arguments) {
    uint64_t flags = arguments[0];
    struct iovec here = {&flags, sizeof flags};
    struct iovec there = {(void *)(uintptr_t)arguments[0], sizeof flags};
    if (number != __NR_clone && process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof flags)
        note('X', "a process", "");
    else if (flags & (CLONE_NEWNS | CLONE_UNTRACED))
        note('X', "another name space", "");
}

static void note_call(pid_t pid) {
    struct ptrace_syscall_info info;
    char path[PATH_MAX];
    if (trace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, (unsigned long)&info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_SECCOMP) {
        note('X', "a call that this kernel does not show", "");
        return;
    }
    const __u64 *arguments = info.seccomp.args;
    const struct call *call = calls;
    while (call < calls + CALLS && call->number != (int)info.seccomp.nr)
        call++;
    if (info.seccomp.ret_data == FOREIGN || call == calls + CALLS)
        note('X', "a program of another architecture", "");
    else if (call->folder == HIDES)
        note('X', "by io_uring, a handle, a mount, a name space or ptrace", "");
    else if (call->folder == CONNECTS)
        note_socket(pid, arguments);
    else if (call->folder == CLONES)
        note_clone(pid, call->number, arguments);
    else if (call->folder == LISTS)
        note_path('L', pid, (int)arguments[0], ".");
    else if (arguments[call->path] != 0 && !read_path(pid, arguments[call->path], path))
        note('X', "a path that cannot be read", "");
    else if (arguments[call->path] != 0 && path[0] != '\0') {
        const int folder = call->folder == WORKING ? AT_FDCWD : (int)arguments[call->folder];
        const bool writes = call->flags >= 0 && (arguments[call->flags] & O_ACCMODE) == O_WRONLY;
        note_path(writes ? 'W' : 'F', pid, folder, path);
    }
}

/* What the kernel itself loaded: the program, and its loader or interpreter. */
static void note_loaded(pid_t pid) {
    char name[32];
    char line[PATH_MAX + 128];
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *maps = fopen(name, "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *path = strchr(line, '/');
        if (path != NULL)
            note('F', path, path);
    }
    if (maps != NULL)
        fclose(maps);
}

/* Go on after a stop; a process that a signal stopped, as that of a terminal, stays stopped. */
static void go_on(pid_t pid, int status) {
    const int event = status >> 16, number = WSTOPSIG(status);
    if (event == PTRACE_EVENT_SECCOMP)
        note_call(pid);
    else if (event == PTRACE_EVENT_EXEC)
        note_loaded(pid);
    const bool is_stopped = event == PTRACE_EVENT_STOP && number != SIGTRAP;
    trace(is_stopped ? PTRACE_LISTEN : PTRACE_CONT, pid, 0, event == 0 ? (unsigned long)number : 0);
}

/* Until the program ends; what it left behind ends with this process. */
static int follow(pid_t program) {
    for (;;) {
        int status;
        const pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno != EINTR)
            fail("the program was lost: %s", strerror(errno));
        if (pid > 0 && WIFSTOPPED(status))
            go_on(pid, status);
        else if (pid == program)
            return status;
    }
}

int main(int number, char **words) {
    if (number < 4 || strcmp(words[2], "--") != 0) {
        puts(
            "plumb-trace FILE -- PROGRAM ARG...: run a program, and list the files that it looks at in FILE");
        return number == 2 && strcmp(words[1], "--help") == 0 ? 0 : EXIT_BAD_INPUT;
    }
    int ready[2];
    if ((list = fopen(words[1], "we")) == NULL || pipe2(ready, O_CLOEXEC) != 0)
        fail("%s: %s", words[1], strerror(errno));
    const pid_t program = fork();
    if (program < 0)
        fail("no process: %s", strerror(errno));
    if (program == 0) {
        char go;
        if (read(ready[0], &go, 1) != 1)
            _exit(EXIT_NOT_EXECUTABLE);
        filter();
        execvp(words[3], words + 3);
        fail_with(EXIT_NOT_FOUND, "%s: %s", words[3], strerror(errno));
    }
    const unsigned long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC |
                                  PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    if (trace(PTRACE_SEIZE, program, 0, options) != 0)
        fail("a program cannot be traced here: %s", strerror(errno));
    if (write(ready[1], "", 1) != 1)
        fail("no pipe: %s", strerror(errno));
    const int status = follow(program);
    if (fclose(list) != 0)
        fail("%s: %s", words[1], strerror(errno));
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}
