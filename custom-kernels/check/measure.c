#include "measure.h"

#include "crew.h"
#include "fail.h"
#include "first_touch.h"
#include "gpus.h"
#include "hardware.h"
#include "hugepages.h"
#include "loops.h"
#include "others.h"
#include "samples.h"
#include "timer.h"
#include "turns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    USED = 3,                    /* arrays of the triad */
    CHUNK = 16 * PAGE_ELEMENTS,  /* elements between two looks at the time: 64 KiB of each array */
    FMA_LOOPS = 5000,            /* about 50 us */
    CHAIN = 100,                 /* dependent instructions of one cycle each, in the text of the program */
    CHAIN_REPEATS = 200,         /* 20,000 of them: about 7 us */
    CLOCKS = 512,                /* samples of the clock that are kept */
    BATCHES = 21,                /* of turns, and of copies */
    TRIPS = 500,                 /* round trips of a batch */
    COPIED = 32 * PAGE_ELEMENTS, /* elements that a neighbour reads: 128 KiB */
    LEAST_ARRAY = 256 * PAGE_ELEMENTS, /* elements: 1 MiB */
    MOST_BYTES = 256 << 20             /* of a core: guests are shown the caches of a whole host */
};
static const double memory_s = 0.3, fma_s = 0.2, cache_s = 0.15;

/* What two neighbours share. */
struct meeting {
    struct word word;
    double *buffer;
    uint64_t next; /* the first turn of the next call */
};

static const struct class *class;
static const struct loops *loops;
static size_t elements, cached; /* of each array of a thread, and those of them that the caches hold */
static double expected, reference, *medians;
static struct meeting **meetings; /* by worker; NULL: it has no neighbour */
static int *roles;

static struct arrays arrays_of(const struct worker *worker) {
    struct arrays arrays = {{NULL}};
    for (int array = 0; array < USED; array++)
        arrays.at[array] = worker->memory + (size_t)array * elements;
    return arrays;
}

static void take(struct worker *worker) {
    worker->memory = memory_take_huge(USED * elements * sizeof(double));
    struct arrays arrays = arrays_of(worker);
    for (int array = 0; array < USED; array++)
        for (size_t i = 0; i < elements; i++)
            arrays.at[array][i] = loops->begin[array];
}

static void give_back(struct worker *worker) {
    memory_give_back(worker->memory, USED * elements * sizeof(double));
    worker->memory = NULL;
}

/* Run `kernel` over the first `count` elements again and again; returns the whole passes. */
static size_t sweep(struct worker *worker, enum kernel kernel, size_t count, double limit) {
    struct arrays arrays = arrays_of(worker);
    double each = sizeof(double) * (kernel == TRIAD ? 3 : 1);
    uint64_t begin = ticks();
    size_t at = 0, passes = 0;
    worker->work = 0.0;
    do {
        size_t end = at + CHUNK < count ? at + CHUNK : count;
        loops->kernel(kernel, loops->streaming, &arrays, at, end);
        worker->work += each * (double)(end - at);
        passes += end == count;
        at = end == count ? 0 : end;
        worker->seconds = ticks_s(ticks() - begin);
    } while (worker->seconds < limit);
    return passes;
}

static void triad(struct worker *worker) {
    size_t passes = sweep(worker, TRIAD, elements, memory_s);
    const double *a = arrays_of(worker).at[A];
    size_t bad = 0;
    for (size_t i = 0; i < elements; i++)
        bad += !(fabs(a[i] - expected) <= 1e-12 * expected) && (passes > 0 || a[i] != loops->begin[A]);
    worker->wrong = bad > 0;
}

static void load(struct worker *worker) {
    sweep(worker, LOAD, cached, cache_s);
}

/* GHz of the calling thread's core now; NAN where no instruction is known to take one cycle. */
static double clock_now(void) {
    uint64_t begin = ticks();
    uint64_t value = begin, other = begin | 1;
    for (int repeat = 0; repeat < CHAIN_REPEATS; repeat++) {
#if defined(__x86_64__)
        __asm__ volatile(".rept 100\n\txor %1, %0\n\t.endr" : "+r"(value) : "r"(other) : "cc");
#elif defined(__aarch64__)
        __asm__ volatile(".rept 100\n\teor %0, %0, %1\n\t.endr" : "+r"(value) : "r"(other));
#else
        return NAN;
#endif
    }
    return CHAIN * CHAIN_REPEATS / ticks_ns(ticks() - begin);
}

static void multiply_add(struct worker *worker) {
    double clocks[CLOCKS];
    size_t count = 0;
    uint64_t begin = ticks();
    double spent = 0.0; /* on the clock, in seconds: not on multiply-adds */
    worker->work = 0.0;
    worker->wrong = false;
    for (int calls = 1; (worker->seconds = ticks_s(ticks() - begin)) < fma_s; calls++) {
        double sink = 0.0;
        worker->work += loops->fma(FMA_LOOPS, &sink);
        worker->wrong |= memcmp(&sink, &reference, sizeof sink) != 0;
        if (calls % 8 == 0 && count < CLOCKS) {
            uint64_t before = ticks();
            clocks[count++] = clock_now();
            spent += ticks_s(ticks() - before);
        }
    }
    worker->seconds -= spent;
    worker->extra = count ? summarize(clocks, count).median : NAN;
}

static void turns(struct worker *worker) {
    struct meeting *meeting = meetings[worker->number];
    double each[BATCHES];
    if (!meeting)
        return;
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t begin = ticks();
        take_turns(&meeting->word, meeting->next + 2 * TRIPS * (uint64_t)batch, TRIPS, roles[worker->number]);
        each[batch] = ticks_ns(ticks() - begin) / (2.0 * TRIPS);
    }
    worker->extra = summarize(each, BATCHES).median;
}

/* One writes, the other reads and takes the time. */
static void copies(struct worker *worker) {
    struct meeting *meeting = meetings[worker->number];
    double each[BATCHES];
    if (!meeting)
        return;
    int role = roles[worker->number];
    struct arrays arrays = {.at = {[A] = meeting->buffer, [C] = meeting->buffer}};
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t turn = meeting->next + 2 * (uint64_t)batch + (uint64_t)role;
        await_turn(&meeting->word, turn);
        uint64_t begin = ticks();
        loops->kernel(role ? LOAD : STORE, false, &arrays, 0, COPIED);
        each[batch] = ticks_s(ticks() - begin);
        atomic_store_explicit(&meeting->word.turn, turn + 1, memory_order_release);
    }
    worker->extra = COPIED * sizeof(double) / summarize(each, BATCHES).median;
}

static void next_turn(uint64_t turns_taken) {
    for (size_t index = 0; index < class->pair_count; index++)
        meetings[crew_on(class->pairs[index].cpu[0])->number]->next += turns_taken;
}

/* Sum of all, and the least of the workers. */
static void add_up(struct round *round, enum figure sum, enum figure least, double scale) {
    double total = 0.0, slowest = INFINITY;
    int cpu = -1;
    for (int number = 0; number < crew_size(); number++) {
        const struct worker *worker = crew_worker(number);
        double rate = worker->work / worker->seconds * scale;
        total += rate;
        if (rate < slowest) {
            slowest = rate;
            cpu = worker->cpu;
        }
    }
    round->of[sum] = (struct reading){true, total, {-1, -1}};
    if (least < FIGURES && crew_size() > 1)
        round->of[least] = (struct reading){true, slowest, {cpu, -1}};
}

static void slowest_numa(struct round *round) {
    double slowest = INFINITY;
    int place = -1, nodes = 0;
    for (int first = 0; first < crew_size(); first++) {
        double rate = 0.0;
        int numa = crew_worker(first)->numa;
        bool seen = false;
        for (int number = 0; number < crew_size(); number++) {
            const struct worker *worker = crew_worker(number);
            seen |= number < first && worker->numa == numa;
            rate += worker->numa == numa ? worker->work / worker->seconds * 1e-9 : 0.0;
        }
        if (seen)
            continue;
        nodes++;
        if (rate < slowest) {
            slowest = rate;
            place = numa;
        }
    }
    if (nodes > 1)
        round->of[MEMORY_NUMA] = (struct reading){true, slowest, {place, -1}};
}

static void clocks(struct round *round) {
    int slowest = 0;
    for (int number = 0; number < crew_size(); number++) {
        medians[number] = crew_worker(number)->extra;
        if (isnan(medians[number]))
            return;
        if (medians[number] < crew_worker(slowest)->extra)
            slowest = number;
    }
    const struct worker *worker = crew_worker(slowest);
    if (crew_size() > 1)
        round->of[CLOCK_CORE] = (struct reading){true, worker->extra, {worker->cpu, -1}};
    double median = summarize(medians, (size_t)crew_size()).median;
    round->of[CLOCK] = (struct reading){true, median, {-1, -1}};
}

/* Median of the pairs, and the slowest; `reader`: whose time it is. */
static void pairs(struct round *round, enum figure median, enum figure slowest, int reader, double scale) {
    size_t worst = 0;
    double sign = figure_facts[median].higher ? -1.0 : 1.0;
    for (size_t index = 0; index < class->pair_count; index++) {
        medians[index] = scale * crew_on(class->pairs[index].cpu[reader])->extra;
        if (sign * medians[index] > sign * medians[worst])
            worst = index;
    }
    const int *cpu = class->pairs[worst].cpu;
    if (class->pair_count > 1)
        round->of[slowest] = (struct reading){true, medians[worst], {cpu[0], cpu[1]}};
    double middle = summarize(medians, class->pair_count).median;
    round->of[median] = (struct reading){true, middle, {-1, -1}};
}

static void meet(void) {
    meetings = allocate((size_t)crew_size(), sizeof *meetings);
    roles = allocate((size_t)crew_size(), sizeof *roles);
    for (size_t index = 0; index < class->pair_count; index++) {
        struct meeting *meeting = allocate_apart(1, sizeof *meeting);
        meeting->buffer = memory_take(COPIED * sizeof(double));
        for (int role = 0; role < 2; role++) {
            int number = crew_on(class->pairs[index].cpu[role])->number;
            meetings[number] = meeting;
            roles[number] = role;
        }
    }
}

const char *measure_start(const struct class *given, bool gpus) {
    class = given;
    loops = loops_here();
    size_t cores = class->core_count, all = all_last_caches_bytes() / cores;
    cached = (cache_bytes(2) + all / 2) / sizeof(double) / PAGE_ELEMENTS * PAGE_ELEMENTS;
    size_t bytes = 4 * all < MOST_BYTES ? 4 * all : MOST_BYTES;
    elements = bytes / USED / sizeof(double) / PAGE_ELEMENTS * PAGE_ELEMENTS;
    elements = elements < LEAST_ARRAY ? LEAST_ARRAY : elements;
    cached = cached < PAGE_ELEMENTS ? PAGE_ELEMENTS : cached;
    elements = elements < cached ? cached : elements;
    size_t needed = cores * USED * elements * sizeof(double), available = memory_available();
    if (needed > available)
        return text("%.3g GiB of memory are needed, %.3g GiB are free", (double)needed / 0x1p30,
                    (double)available / 0x1p30);
    if (gpus)
        gpus_start(); /* before there are threads */
    int missing = crew_start(class);
    if (missing >= 0)
        return text("this process may not use CPU %d: start it without taskset and outside of a cpuset",
                    missing);
    double element[ARRAYS];
    memcpy(element, loops->begin, sizeof element);
    loops->expect(TRIAD, element);
    expected = element[A];
    loops->fma(FMA_LOOPS, &reference);
    medians = allocate(cores, sizeof *medians);
    meet();
    timer_start();
    gpus_wait();
    return NULL;
}

static int wrong_cpu(void) {
    for (int number = 0; number < crew_size(); number++)
        if (crew_worker(number)->wrong)
            return crew_worker(number)->cpu;
    return -1;
}

const char *measure_round(struct round *round, bool *wrong) {
    int cpu;
    *round = (struct round){.others = 0.0};
    const char *wrong_gpu = gpus_round(round); /* alone: its process would count as other work */
    *wrong = wrong_gpu != NULL;
    if (wrong_gpu)
        return wrong_gpu;
    others_begin();
    crew_call(take);
    crew_call(triad);
    bool in_memory = (cpu = wrong_cpu()) >= 0;
    add_up(round, MEMORY, FIGURES, 1e-9);
    slowest_numa(round);
    crew_call(load);
    add_up(round, CACHE, CACHE_CORE, 1e-9);
    crew_call(give_back);
    if (!in_memory) {
        crew_call(multiply_add);
        cpu = wrong_cpu();
        add_up(round, FMA, FMA_CORE, 1e-9);
        clocks(round);
    }
    if (class->pair_count > 0) {
        crew_call(turns);
        next_turn((uint64_t)2 * TRIPS * BATCHES);
        pairs(round, HANDOVER, HANDOVER_PAIR, 0, 1.0);
        crew_call(copies);
        next_turn((uint64_t)2 * BATCHES);
        pairs(round, NEIGHBOUR, NEIGHBOUR_PAIR, 1, 1e-9);
    }
    round->others = others_end();
    *wrong = cpu >= 0;
    if (cpu >= 0)
        return text("wrong result: %s of CPU %d", in_memory ? "a sum in the memory" : "multiply-adds", cpu);
    cpu = crew_astray();
    return cpu < 0 ? NULL : text("the thread of CPU %d was moved to another", cpu);
}
