#include "crew.h"

#include "fail.h"
#include "hardware.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

static struct worker *workers;
static int size;
static pthread_barrier_t gate;
static void (*work)(struct worker *);

static void *live(void *argument) {
    struct worker *worker = argument;
    worker->bound = cpu_bind(worker->cpu);
    for (;;) {
        pthread_barrier_wait(&gate);
        work(worker);
        worker->bound = worker->bound && sched_getcpu() == worker->cpu;
        pthread_barrier_wait(&gate);
    }
    return NULL;
}

int crew_start(const struct class *class) {
    struct cpus cpus;
    cpus_allowed(&cpus);
    for (size_t index = 0; index < class->core_count; index++)
        if (!cpus_have(&cpus, class->cores[index].cpu))
            return class->cores[index].cpu;
    size = (int)class->core_count;
    workers = allocate_apart((size_t)size, sizeof *workers);
    pthread_barrier_init(&gate, NULL, (unsigned)size + 1);
    for (int number = 0; number < size; number++) {
        const struct core *core = &class->cores[number];
        workers[number] = (struct worker){.number = number, .cpu = core->cpu, .numa = core->numa};
        pthread_t thread;
        int fault = pthread_create(&thread, NULL, live, &workers[number]);
        if (fault != 0)
            fail("no thread on CPU %d: %s", core->cpu, strerror(fault));
    }
    return -1;
}

int crew_size(void) {
    return size;
}

struct worker *crew_worker(int number) {
    return &workers[number];
}

void crew_call(void (*function)(struct worker *)) {
    work = function;
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
}

struct worker *crew_on(int cpu) {
    int number = 0;
    while (workers[number].cpu != cpu)
        number++;
    return &workers[number];
}

int crew_astray(void) {
    for (int number = 0; number < size; number++)
        if (!workers[number].bound)
            return workers[number].cpu;
    return -1;
}
