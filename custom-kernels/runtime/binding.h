/* The CPUs that every thread of every rank may run on, as the threads report them. */
#ifndef PLUMB_KERNEL_BINDING_H
#define PLUMB_KERNEL_BINDING_H

enum { MOST_HOST = 64 };

struct binding {
    char host[MOST_HOST];
    int threads;
    char *cpus; /* one list per thread, separated by spaces: "0 1" or "0-3 0-3" */
};

/* Collective. Returns on rank 0 an array with one element per rank, NULL elsewhere. Free with
 * binding_free. */
struct binding *binding_collect(void);
void binding_free(struct binding *bindings);

#endif
