/* plumb-neighbour KIND BYTES: work on every CPU that this process may use until SIGTERM, as a neighbour of a
 * program.
 *
 * One thread for each CPU, bound to it, with its share of BYTES. It prints a line once all have touched their
 * memory. sleeper: nothing. compute: multiplications and additions in registers. memory: copies one half of
 * its share to the other. cache: changes places of its share in random order. messages: 16 KiB through a
 * socket of the kernel. */
#include "fail.h"
#include "hardware.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STEPS = 1 << 14, MESSAGE = 1 << 14, WIDTH = 8, CHAINS = 12 };
typedef double vector __attribute__((vector_size(WIDTH * sizeof(double))));

static volatile sig_atomic_t ended;
static size_t share;
static pthread_barrier_t touched;
static const char *const kinds[] = {"sleeper", "compute", "memory", "cache", "messages"};
enum { SLEEPER, COMPUTE, MEMORY, CACHE, MESSAGES, KINDS };
static int kind = KINDS;

static void end(int number) {
    (void)number;
    ended = 1;
}

static void compute(void) {
    vector chains[CHAINS] = {{0}};
    for (int step = 0; step < STEPS; step++)
        for (int chain = 0; chain < CHAINS; chain++)
            chains[chain] = chains[chain] * 0.999 + 1e-3;
    __asm__ volatile("" : : "m"(chains) : "memory");
}

static void change(uint64_t *field, uint64_t *state) {
    for (int step = 0; step < STEPS; step++) {
        *state = *state * 6364136223846793005U + 1442695040888963407U;
        field[(size_t)(*state >> 16) % (share / sizeof *field)] += step;
    }
}

static void pass(const int ends[2], char *message) {
    if (write(ends[0], message, MESSAGE) < 0 || read(ends[1], message, MESSAGE) < 0)
        fail("messages: %s", strerror(errno));
}

static void *work(void *cpu) {
    int ends[2];
    if (!cpu_bind(*(int *)cpu))
        fail("CPU %d: %s", *(int *)cpu, strerror(errno));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        fail("messages: %s", strerror(errno));
    char *field = allocate_apart(share, 1);
    memset(field, 1, share);
    uint64_t state = (uint64_t)*(int *)cpu + 1;
    pthread_barrier_wait(&touched);
    while (!ended)
        switch (kind) {
        case COMPUTE:
            compute();
            break;
        case MEMORY:
            for (size_t place = 0; place < share / 2 && !ended; place += STEPS)
                memcpy(field + share / 2 + place, field + place, STEPS);
            break;
        case CACHE:
            change((uint64_t *)field, &state);
            break;
        case MESSAGES:
            pass(ends, field);
            break;
        default:
            usleep(10000);
        }
    return NULL;
}

int main(int count, char **words) {
    for (int each = 0; count == 3 && each < KINDS; each++)
        if (strcmp(words[1], kinds[each]) == 0)
            kind = each;
    if (kind == KINDS)
        fail("plumb-neighbour sleeper|compute|memory|cache|messages BYTES");
    static int cpus[MOST_CPUS];
    static pthread_t ids[MOST_CPUS];
    struct cpus allowed;
    if (!cpus_allowed(&allowed))
        fail("CPUs: %s", strerror(errno));
    size_t threads = (size_t)cpus_count(&allowed);
    /* whole blocks in both halves, and room for a message */
    share = ((size_t)strtoull(words[2], NULL, 10) / threads / (2 * STEPS) + 1) * 2 * STEPS;
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = end, .sa_flags = SA_RESTART}, NULL);
    pthread_barrier_init(&touched, NULL, (unsigned)threads + 1);
    for (int cpu = 0, number = 0; cpu < MOST_CPUS; cpu++)
        if (cpus_have(&allowed, cpu)) {
            cpus[number] = cpu;
            int fault = pthread_create(&ids[number], NULL, work, &cpus[number]);
            if (fault != 0)
                fail("a thread: %s", strerror(fault));
            number++;
        }
    pthread_barrier_wait(&touched);
    printf("ready\n");
    fflush(stdout);
    for (size_t number = 0; number < threads; number++)
        pthread_join(ids[number], NULL);
    return 0;
}
