/* plumb-check-gpu: rates of the GPUs of this node for plumb-check, which is one static program and cannot
 * load a driver's library.
 *
 * It says "ready" once the GPUs are open, or one line that says why it cannot go on. Then it answers each
 * line of its input with one of figures.h's names, values in GB/s and numbers of GPUs, such as "gpu.in 55.1 0
 * gpu.out 54.9 3 gpu.memory 3890 0", or with "wrong result: ...". It ends with its input. */
#include "cuda_driver.h"
#include "fail.h"
#include "figures.h"
#include "first_touch.h"
#include "gpu_triad.ptx.h"
#include "hardware.h"
#include "procfile.h"
#include "samples.h"
#include "timer.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    ARRAYS = 3,
    COPIED = 32 << 20, /* bytes of a copy: about 0.6 ms at 55 GB/s */
    PARTS = 4,         /* copies that fill an array of the triad: 128 MiB, twice an L2 cache */
    ELEMENTS = COPIED / (int)sizeof(double), /* of a copy */
    REPEATS = 7,                             /* the median of these counts */
    STARTS = 10,                             /* triads that are waited for together */
    WARM_COPIES = 4,                         /* until link and clocks are no longer asleep */
    WARM_TRIADS = 100,
    THREADS = 256,
    BLOCKS_A_PROCESSOR = 8
};
static const double factor = 0.5;

struct device {
    struct gpu gpu;
    double *from, *to;
    gpu_pointer array[ARRAYS];
    gpu_stream stream;
    gpu_function triad;
};

static struct device devices[MOST_GPUS];
static int count, rounds;

/* Host memory near the GPU: run where its link is. Where that cannot be, the memory lies where it may. */
static void go_near(const char *address) {
    char path[128], list[4096];
    struct cpus near;
    CPU_ZERO_S(sizeof near, near.set);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%.20s/local_cpulist", address);
    if (!read_text(path, list, sizeof list))
        return;
    for (char *rest = list, *part; (part = strsep(&rest, ",\n")) && *part;) {
        int first, last;
        int got = sscanf(part, "%d-%d", &first, &last);
        for (int cpu = first; got > 0 && cpu <= (got == 2 ? last : first) && cpu < MOST_CPUS; cpu++)
            CPU_SET_S((size_t)cpu, sizeof near, near.set);
    }
    if (CPU_COUNT_S(sizeof near, near.set) > 0)
        (void)sched_setaffinity(0, sizeof near, near.set);
}

static void copy_in(struct device *device) {
    gpu_copy_in(device->array[0], device->from, COPIED, device->stream);
    gpu_wait(device->stream);
}

static void copy_out(struct device *device) {
    gpu_copy_out(device->to, device->array[0], COPIED, device->stream);
    gpu_wait(device->stream);
}

static void triads(struct device *device, int starts) {
    double scale = factor;
    uint64_t elements = (uint64_t)PARTS * ELEMENTS;
    void *parameters[] = {&device->array[0], &device->array[1], &device->array[2], &scale, &elements};
    unsigned processors = device->gpu.processors ? device->gpu.processors : 1;
    for (int start = 0; start < starts; start++)
        gpu_start(device->triad, BLOCKS_A_PROCESSOR * processors, THREADS, parameters, device->stream);
    gpu_wait(device->stream);
}

static void some_triads(struct device *device) {
    triads(device, STARTS);
}

/* Seconds of the median call. */
static double time_of(void (*work)(struct device *device), struct device *device) {
    double each[REPEATS];
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t begin = ticks();
        work(device);
        each[repeat] = ticks_s(ticks() - begin);
    }
    return summarize(each, REPEATS).median;
}

static void open_device(int number) {
    struct device *device = &devices[number];
    gpu_open_number(number, &device->gpu);
    gpu_use(number);
    go_near(device->gpu.address);
    device->stream = gpu_stream_new();
    device->triad = gpu_load(gpu_triad, "triad");
    device->from = memory_take(COPIED);
    device->to = memory_take(COPIED);
    memset(device->to, 0, COPIED);
    for (size_t i = 0; i < ELEMENTS; i++)
        device->from[i] = (double)((i + (size_t)number) % 1000);
    gpu_pin(device->from, COPIED);
    gpu_pin(device->to, COPIED);
    for (int array = 0; array < ARRAYS; array++) {
        device->array[array] = gpu_take((size_t)PARTS * COPIED);
        for (size_t part = 0; array > 0 && part < PARTS; part++)
            gpu_copy_in(device->array[array] + part * COPIED, device->from, COPIED, device->stream);
    }
    gpu_wait(device->stream);
}

/* Whether what was copied out is `times` what was copied in. */
static bool is_right(const struct device *device, double times) {
    for (size_t i = 0; i < ELEMENTS; i++)
        if (device->to[i] != times * device->from[i])
            return false;
    return true;
}

/* What is wrong of a GPU, or NULL. Of the triad another part is looked at in each round. */
static const char *measure(struct device *device, double *rates) {
    go_near(device->gpu.address);
    for (int copy = 0; copy < WARM_COPIES; copy++)
        copy_in(device);
    rates[0] = COPIED / time_of(copy_in, device) * 1e-9;
    memset(device->to, 0xff, COPIED);
    rates[1] = COPIED / time_of(copy_out, device) * 1e-9;
    if (!is_right(device, 1.0))
        return "what was copied to a GPU and back";
    triads(device, WARM_TRIADS);
    rates[2] = (double)ARRAYS * PARTS * COPIED * STARTS / time_of(some_triads, device) * 1e-9;
    memset(device->to, 0xff, COPIED);
    size_t part = PARTS - 1 - (size_t)(rounds % PARTS);
    gpu_copy_out(device->to, device->array[0] + part * COPIED, COPIED, device->stream);
    gpu_wait(device->stream);
    return is_right(device, 1.0 + factor) ? NULL : "a triad";
}

/* The slowest GPU of each figure. */
static void answer(void) {
    static const enum figure figures[] = {GPU_IN, GPU_OUT, GPU_MEMORY};
    double least[] = {INFINITY, INFINITY, INFINITY}, rates[3] = {0};
    int slowest[3] = {0};
    for (int number = 0; number < count; number++) {
        gpu_use(number);
        const char *wrong = measure(&devices[number], rates);
        if (wrong) {
            printf("wrong result: %s of GPU %d (%s)\n", wrong, number, devices[number].gpu.address);
            return;
        }
        for (int which = 0; which < 3; which++)
            if (rates[which] < least[which]) {
                least[which] = rates[which];
                slowest[which] = number;
            }
    }
    for (int which = 0; which < 3; which++)
        printf("%s %.6g %d%c", figure_facts[figures[which]].name, least[which], slowest[which],
               which < 2 ? ' ' : '\n');
}

int main(void) {
    char line[64], why[512] = "";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* all GPUs, numbered as nvidia-smi does */
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    count = gpu_count(why, sizeof why);
    if (count == 0)
        fail("%s", why);
    timer_start();
    for (int number = 0; number < count; number++)
        open_device(number);
    puts("ready");
    for (; fgets(line, sizeof line, stdin); rounds++)
        answer();
    return 0;
}
