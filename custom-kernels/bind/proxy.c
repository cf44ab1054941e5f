#include "proxy.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* as /proc has it: cut after 15 characters */
static const char proxy_name[] = "hydra_pmi_proxy\n";

void end_with_proxy(void) {
    pid_t parent = getppid();
    char path[64], name[sizeof proxy_name] = "";
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)parent);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t got = read(file, name, sizeof name - 1);
    close(file);
    if (got < 0 || strcmp(name, proxy_name) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return;
    if (getppid() != parent) /* it ended before the kernel was asked */
        raise(SIGKILL);
}
