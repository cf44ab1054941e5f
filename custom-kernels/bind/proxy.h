/* A launcher's proxy, which starts the ranks of a node. */
#ifndef PLUMB_PROXY_H
#define PLUMB_PROXY_H

/* Have this process, and the program that it becomes, killed when the proxy that started it ends. Only
 * Hydra's proxy is known to need it: it ends at once where it loses mpiexec, and leaves ranks behind that it
 * started in the last moment. It has one thread; the kernel looks at the thread that started a process, and
 * other launchers have several. */
void end_with_proxy(void);

#endif
