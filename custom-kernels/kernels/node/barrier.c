/* What a barrier among the threads of a rank costs, by its kind and the number of threads. */
#include "barrier_kinds.h"
#include "barrier_near.h"
#include "fail_together.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_THREADS = 4096,
    ALL_KINDS = 0,
    YIELD_SOON = 1000,
    YIELD_LATE = 1000000,
    CHECKED = 1000,
    TRIALS = 10,
    SAMPLE_NS = 200000
};

static struct sizes team_sizes;
static int chosen;
static long samples = 100, iterations, spins;

static const char *const words[] = {"all",           "pthread",      "openmp", "spin",
                                    "dissemination", "hierarchical", NULL};

static const struct argument arguments[] = {
    {"--threads", ARGUMENT_SIZES, &team_sizes, 2, MOST_THREADS, NULL,
     "threads that take part; nothing given: 2, 4, 8, ... and all of the rank's"},
    {"--kernel", ARGUMENT_CHOICE, &chosen, 0, 0, words, "kind of barrier"},
    {"--samples", ARGUMENT_INTEGER, &samples, 1, 1e6, NULL, "timings of each row"},
    {"--iterations", ARGUMENT_INTEGER, &iterations, 0, 1e9, NULL,
     "barriers in a timing; 0: as many as take about 200 us"},
    {"--spins", ARGUMENT_INTEGER, &spins, 0, 1e15, NULL,
     "looks in vain before a thread yields; 0: 1000 if threads exceed CPUs, else 1000000"},
    {.name = NULL},
};

static const struct program program = {
    .name = "barrier",
    .summary = "time of a barrier among the threads of a rank",
    .method =
        "pthread        pthread_barrier_wait\n"
        "openmp         the barrier of the OpenMP library; OMP_WAIT_POLICY decides whether it spins\n"
        "spin           sense-reversing: one counter and one flag, on one cache line\n"
        "dissemination  log2(threads) rounds, each thread signals the one 2^round ahead\n"
        "hierarchical   spin among the threads that share the last cache, then among one of each\n"
        "               group (from the CPUs that the threads run on, as the kernel lists their caches)\n"
        "time: median over the samples of (time of all iterations / iterations), seen by the first\n"
        "thread; of several ranks, the slowest. cycles: the same in reference cycles of the time\n"
        "stamp counter, which runs at a constant rate, not at the clock of the core.\n"
        "Model: none; the lower bound is the time of two cache-line transfers between the cores\n"
        "farthest apart.\n"
        "Check: every thread, some of them late, looks after each of 1000 barriers whether all have\n"
        "arrived.\n"
        "Sources: Mellor-Crummey and Scott, ACM TOCS 9 (1991) 21; Hensgen, Finkel, Manber, IJPP 17\n"
        "(1988) 1.",
    .arguments = arguments,
};

/* The thread's own number, on its own cache lines. */
struct slot {
    alignas(128) atomic_long value;
};

/* `count` times `loops` barriers by the whole team; each[i] is the time of one barrier in ticks. */
static void time_barriers(struct team *team, enum kind kind, int threads, double *each, long count,
                          long loops) {
#pragma omp parallel num_threads(threads)
    {
        int thread = omp_get_thread_num();
        for (long sample = 0; sample < count; sample++) {
            team_wait(team, kind, thread);
            uint64_t begin = ticks();
            for (long loop = 0; loop < loops; loop++)
                team_wait(team, kind, thread);
            if (thread == 0)
                each[sample] = (double)(ticks() - begin) / (double)loops;
        }
    }
}

/* Median time of one barrier in ticks; the first timings are for warming up. */
static double measure(struct team *team, enum kind kind, int threads) {
    double few[TRIALS], *each = allocate((size_t)samples, sizeof *each);
    time_barriers(team, kind, threads, few, TRIALS, TRIALS);
    double expected_ns = ticks_ns(1) * summarize(few, TRIALS).median;
    long loops = iterations ? iterations : (long)(SAMPLE_NS / expected_ns) + 1;
    time_barriers(team, kind, threads, each, samples, loops);
    double median = summarize(each, (size_t)samples).median;
    free(each);
    return median;
}

/* How often a thread got through a barrier before another one had come to it. */
static long violations(struct team *team, enum kind kind, int threads) {
    struct slot *slots = allocate_apart((size_t)threads, sizeof *slots);
    long found = 0;
#pragma omp parallel num_threads(threads) reduction(+ : found)
    {
        int thread = omp_get_thread_num();
        for (long round = 1; round <= CHECKED; round++) {
            uint64_t until = ticks() + (uint64_t)((thread + round) % threads) * 300;
            while (ticks() < until)
                continue;
            atomic_store_explicit(&slots[thread].value, round, memory_order_relaxed);
            team_wait(team, kind, thread);
            for (int other = 0; other < threads; other++)
                found += atomic_load_explicit(&slots[other].value, memory_order_relaxed) < round;
        }
    }
    free(slots);
    return found;
}

/* The OpenMP library whose functions this process runs, without version: "libgomp". */
static const char *openmp_library(void) {
    static char name[64] = "static";
    Dl_info info;
    if (dladdr((void *)(uintptr_t)omp_get_max_threads, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        snprintf(name, sizeof name, "%s", slash ? slash + 1 : info.dli_fname);
        name[strcspn(name, ".")] = '\0';
    }
    return name;
}

static void one_row(struct result *result, struct team *team, enum kind kind, int threads) {
    char what[64];
    long found = violations(team, kind, threads);
    double median = ranks_max(measure(team, kind, threads));
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    struct row *row = result_row(result);
    row_text(row, "kernel", kind_names[kind]);
    row_text(row, "runtime", openmp_library());
    row_integer(row, "threads", threads);
    row_figure(row, "time", "ns", LOWER_IS_BETTER, median * timer_facts()->ns_per_tick, samples);
    if (!strcmp(timer_facts()->source, "tsc"))
        row_figure(row, "cycles", "cycles", LOWER_IS_BETTER, median, samples);
    snprintf(what, sizeof what, "%s, %d threads: passed before all had come", kind_names[kind], threads);
    result_check(result, found == 0, what, (double)found, 0.0);
}

static void one_team(struct result *result, int threads) {
    require_threads(threads);
    int *group = allocate((size_t)threads, sizeof *group);
    int cpus = near_groups(threads, group);
    long looks = spins ? spins : threads > cpus ? YIELD_SOON : YIELD_LATE;
    struct team *team = team_new(threads, group, looks);
    for (int kind = 0; kind < KINDS; kind++)
        if (chosen == ALL_KINDS || chosen == kind + 1)
            one_row(result, team, kind, threads);
    if (threads > cpus)
        result_note(result, "%d threads on %d CPUs: they wait for each other's time slices", threads, cpus);
    team_free(team);
    free(group);
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    if (team_sizes.count == 0)
        team_sizes = sizes_up_to(2, (size_t)program_threads());
    if (team_sizes.values[0] < 2)
        fail_together("one thread: a barrier needs two; set OMP_NUM_THREADS or give --threads 2");
    struct result *result = result_new();
    for (int index = 0; index < team_sizes.count; index++)
        one_team(result, (int)team_sizes.values[index]);
    const char *policy = getenv("OMP_WAIT_POLICY");
    result_model(result, "none: how long a cache line takes from core to core is not known beforehand");
    result_note(result, "OMP_WAIT_POLICY %s", policy ? policy : "not set: the library's default");
    if (strcmp(timer_facts()->source, "tsc") != 0)
        result_note(result, "no cycles: the counter %s does not count them", timer_facts()->source);
    return result_finish(result);
}
