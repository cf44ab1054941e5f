#include "apply.h"

#include "fail.h"
#include "rank_variables.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc/linux.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Noreturn void cpus_refused(const struct plan *plan, hwloc_const_bitmap_t wanted, const char *reason) {
    char *list;
    if (hwloc_bitmap_list_asprintf(&list, wanted) < 0)
        fail("out of memory");
    fail("placement %s: this process cannot be bound to CPUs %s: %s", plan->placement->name, list, reason);
}

void apply_allowed(const struct machine *machine) {
    if (hwloc_linux_set_tid_cpubind(machine->topology, 0, machine->allowed) != 0)
        fail("--allowed: this process cannot be bound to these CPUs: %s", strerror(errno));
}

void apply_affinity(const struct plan *plan, unsigned rank, const struct machine *machine) {
    const struct rank_plan *own = &plan->rank[rank];
    if (!own->place)
        return;
    if (hwloc_linux_set_tid_cpubind(machine->topology, 0, own->cpus) != 0)
        cpus_refused(plan, own->cpus, strerror(errno));
    hwloc_bitmap_t got = hwloc_bitmap_alloc();
    if (hwloc_linux_get_tid_cpubind(machine->topology, 0, got) != 0)
        cpus_refused(plan, own->cpus, strerror(errno));
    if (!hwloc_bitmap_isequal(got, own->cpus))
        cpus_refused(plan, own->cpus, "the kernel removed some of them");
    hwloc_bitmap_free(got);
}

static long set_policy(int mode, hwloc_const_bitmap_t nodes) {
    int words = nodes ? hwloc_bitmap_nr_ulongs(nodes) : 0;
    if (words <= 0)
        return syscall(SYS_set_mempolicy, mode, NULL, 0UL);
    unsigned long *mask = allocate((size_t)words, sizeof *mask);
    hwloc_bitmap_to_ulongs(nodes, (unsigned)words, mask);
    /* The kernel reads one bit less than the size that it is given. */
    long result = syscall(SYS_set_mempolicy, mode, mask, (unsigned long)words * sizeof *mask * 8 + 1);
    int error = errno;
    free(mask);
    errno = error;
    return result;
}

/* Containers often forbid the call. */
static bool call_forbidden(int error) {
    return error == EPERM || error == ENOSYS;
}

void apply_memory(const struct plan *plan, unsigned rank, const struct machine *machine) {
    static const int modes[] = {MPOL_DEFAULT, MPOL_BIND, MPOL_INTERLEAVE};
    const struct rank_plan *own = &plan->rank[rank];
    if (own->policy == POLICY_NONE && !own->place)
        return;
    if (set_policy(modes[own->policy], own->policy == POLICY_NONE ? NULL : own->nodes) == 0)
        return;
    int error = errno;
    bool nothing_to_choose =
        own->policy == POLICY_NONE || hwloc_get_nbobjs_by_type(machine->topology, HWLOC_OBJ_NUMANODE) == 1;
    if (!call_forbidden(error) || !nothing_to_choose)
        fail("memory %s: the kernel refuses this policy: %s%s", plan->memory, strerror(error),
             call_forbidden(error) ? " (a container needs CAP_SYS_NICE for it)" : "");
}

void redirect_output(const char *folder) {
    char host[256], path[4096];
    if (gethostname(host, sizeof host) != 0)
        fail("this host's name: %s", strerror(errno));
    host[sizeof host - 1] = '\0';
    if (snprintf(path, sizeof path, "%s/%s.%ld.out", folder, host, (long)getpid()) >= (int)sizeof path)
        fail("output folder %s: the path is too long", folder);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0)
        fail("output folder %s: %s", folder, strerror(errno));
    close(file);
}

void redirect_input(const char *path) {
    /* the launcher's pipe may stay open without an end: a program that reads would wait for ever */
    const char *own = path && told_by_launcher(RANK) <= 0 ? path : "/dev/null";
    int file = open(own, O_RDONLY | O_CLOEXEC);
    if (file < 0 || dup2(file, STDIN_FILENO) < 0)
        fail("standard input %s: %s", own, strerror(errno));
    close(file);
}

void become(char **program) {
    execvp(program[0], program);
    if (errno == ENOENT || errno == ENOTDIR)
        fail_with(EXIT_NOT_FOUND, "program '%s': %s", program[0], strerror(errno));
    fail_with(EXIT_NOT_EXECUTABLE, "program '%s' cannot be executed: %s", program[0], strerror(errno));
}
