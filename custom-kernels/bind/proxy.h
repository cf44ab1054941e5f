/* A launcher's proxy, which starts the ranks of a node. */
#ifndef PLUMB_PROXY_H
#define PLUMB_PROXY_H

/* Have the kernel kill this process, and the program that it becomes, when the proxy that started it ends.
 * Only Hydra's proxy is known to need this: it ends at once when it loses mpiexec, and leaves behind ranks
 * that it has just started. The kernel watches the thread that started the process. Hydra's proxy has only
 * one; other launchers have several, so this is not done for them. */
void end_with_proxy(void);

#endif
