/* Copies between host and GPU, and the GPU's own memory. */
#include "cuda_driver.h"
#include "fail_together.h"
#include "first_touch.h"
#include "gpu_triad.ptx.h"
#include "pci_link.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, BLOCKS_A_PROCESSOR = 8, STARTS = 50, ADDRESS = sizeof((struct gpu *)0)->address };

static size_t bytes = 256 << 20;
static size_t least;
static long repetitions = 20;

static const struct argument arguments[] = {
    {"--bytes", ARGUMENT_SIZE, &bytes, 1024, 1e11, NULL, "of a copy, and of each array of the triad, a rank"},
    {"--least", ARGUMENT_SIZE, &least, 0, 1e11, NULL,
     "smallest of the sizes of pinned copies, up to --bytes by factors of 4; 0: --bytes alone"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1000, NULL,
     "timed repetitions; of rates the best one counts, of times the median"},
    {.name = NULL},
};

static const struct program program = {
    .name = "gpu_memory",
    .summary = "copies between host and GPU by kind of memory and direction, and the GPU's own memory",
    .method =
        "Each rank uses the first GPU that the CUDA driver lets it see (plumb-bind --placement gpu leaves "
        "it\n"
        "one), all at once. Host memory lies where the rank's policy says (plumb-bind --memory node:N).\n"
        "bandwidth of copies: bytes of all ranks / the best repetition; a repetition begins behind a "
        "barrier\n"
        "and lasts until the slowest rank has waited for its GPU. way: in (to the GPU), out, both (one of\n"
        "each at once, in two streams; their sum), over (to the second GPU that the rank sees, if it sees "
        "one;\n"
        "path: direct, or through the host). memory: pinned, or pageable, which the driver copies\n"
        "through buffers of its own.\n"
        "time: the median of a copy of 4 bytes to the GPU and the wait for it (way in), of the start of a\n"
        "kernel that does nothing and the wait for it (way start); of the slowest rank.\n"
        "bandwidth of triad, a = b + s c in double precision: 24 bytes per element. level memory: arrays of\n"
        "--bytes; level l2: arrays that fill half of the L2 cache, 50 starts in a row.\n"
        "Model of triad: clock x width of the memory's bus as the driver reports them; twice, for both\n"
        "edges. Of copies: speed x width of the GPU's PCIe link after them, as sysfs shows it, without "
        "headers\n"
        "of packets; none where copies were faster, as where a virtual machine shows another link. Ranks "
        "that\n"
        "share a GPU share its limits.\n"
        "Check: what was copied in and out again, and the triad, are exact in every element.\n"
        "nvbandwidth (NVIDIA) measures copies too, by the GPU's clock, without the time to start them.",
    .arguments = arguments,
};

/* What one rank has: two buffers on the host, three arrays on its GPU. */
struct job {
    struct gpu gpu;
    double share; /* 1 / the number of ranks that use this GPU */
    double *from, *to;
    gpu_pointer array[3];
    gpu_stream stream[2];
    gpu_function triad;
    gpu_pointer second; /* on the second GPU */
    size_t size;        /* of a copy */
    uint64_t elements;  /* of the triad that work() starts */
};

typedef void (*work)(struct job *job);

static void copy_in(struct job *job) {
    gpu_copy_in(job->array[0], job->from, job->size, job->stream[0]);
    gpu_wait(job->stream[0]);
}

static void copy_out(struct job *job) {
    gpu_copy_out(job->to, job->array[0], job->size, job->stream[0]);
    gpu_wait(job->stream[0]);
}

static void copy_both(struct job *job) {
    gpu_copy_in(job->array[0], job->from, job->size, job->stream[0]);
    gpu_copy_out(job->to, job->array[1], job->size, job->stream[1]);
    gpu_wait(job->stream[0]);
    gpu_wait(job->stream[1]);
}

static void copy_over(struct job *job) {
    gpu_copy_over(job->second, job->array[0], job->size, job->stream[0]);
    gpu_wait(job->stream[0]);
}

static void copy_word(struct job *job) {
    gpu_copy_in(job->array[0], job->from, 4, job->stream[0]);
    gpu_wait(job->stream[0]);
}

static void start(struct job *job) {
    double factor = 0.5;
    void *parameters[] = {&job->array[0], &job->array[1], &job->array[2], &factor, &job->elements};
    unsigned blocks = BLOCKS_A_PROCESSOR * (job->gpu.processors ? job->gpu.processors : 1);
    gpu_start(job->triad, blocks, THREADS, parameters, job->stream[0]);
}

static void triad(struct job *job) {
    start(job);
    gpu_wait(job->stream[0]);
}

static void triads(struct job *job) {
    for (int i = 0; i < STARTS; i++)
        start(job);
    gpu_wait(job->stream[0]);
}

/* The summary of the times of all repetitions, in s, each of the slowest rank; one before them is not timed.
 */
static struct summary repeat(work work, struct job *job) {
    double *times = allocate((size_t)repetitions, sizeof *times);
    for (long i = -1; i < repetitions; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        uint64_t begin = ticks();
        work(job);
        double seconds = ranks_max(ticks_s(ticks() - begin));
        if (i >= 0)
            times[i] = seconds;
    }
    struct summary found = summarize(times, (size_t)repetitions);
    free(times);
    return found;
}

/* The addresses of the GPUs of the `count` ranks in `of`, each of ADDRESS bytes; the caller frees them. */
static char *addresses(const struct gpu *gpu, MPI_Comm of, int *count) {
    MPI_Comm_size(of, count);
    char *each = allocate((size_t)*count, ADDRESS);
    MPI_Allgather(gpu->address, ADDRESS, MPI_CHAR, each, ADDRESS, MPI_CHAR, of);
    return each;
}

/* The GPUs of all ranks in their order, on every rank; the caller frees it. */
static char *devices(const struct gpu *gpu) {
    int count;
    char *each = addresses(gpu, MPI_COMM_WORLD, &count), *list = allocate((size_t)count, ADDRESS + 1);
    for (int rank = 0; rank < count; rank++) {
        strcat(list, rank ? "," : "");
        strncat(list, each + rank * ADDRESS, ADDRESS);
    }
    free(each);
    return list;
}

/* 1 / the number of ranks of this node that use this GPU. */
static double share_of(const struct gpu *gpu) {
    int count, users = 0;
    char *each = addresses(gpu, program_node(), &count);
    for (int rank = 0; rank < count; rank++)
        users += !strncmp(each + rank * ADDRESS, gpu->address, ADDRESS);
    free(each);
    return 1.0 / users;
}

/* The sum of `own`, what one rank's part of a GPU reaches at most, over all ranks; 0 if one does not know it.
 */
static double limit_of_all(double own) {
    double least = -ranks_max(-own), sum = ranks_sum(own);
    return least > 0 ? sum : 0;
}

static struct row *row_of(struct result *result, const char *device, const char *way) {
    struct row *row = result_row(result);
    row_text(row, "device", device);
    row_text(row, "way", way);
    return row;
}

static void report_copies(struct result *result, struct job *job, const char *device, const char *memory) {
    static const struct {
        const char *way;
        work work;
        double times;
    } kinds[] = {{"in", copy_in, 1}, {"out", copy_out, 1}, {"both", copy_both, 2}};
    /* the driver may copy pageable memory before the call returns: the two directions would not overlap */
    int count = strcmp(memory, "pinned") ? 2 : 3;
    for (int i = 0; i < count; i++) {
        double seconds = repeat(kinds[i].work, job).least;
        struct row *row = row_of(result, device, kinds[i].way);
        row_text(row, "memory", memory);
        row_integer(row, "bytes", (long long)job->size);
        double rate = kinds[i].times * (double)job->size * program_ranks() / seconds * 1e-6;
        row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, rate, repetitions);
        double most = kinds[i].times * limit_of_all(job->share * pci_link_mbyte_s(job->gpu.address));
        if (most > rate)
            row_limit(row, most);
    }
}

static void report_times(struct result *result, struct job *job, const char *device) {
    struct row *row = row_of(result, device, "in");
    row_integer(row, "bytes", 4);
    row_figure(row, "time", "us", LOWER_IS_BETTER, repeat(copy_word, job).median * 1e6, repetitions);
    job->elements = 0;
    row = row_of(result, device, "start");
    row_figure(row, "time", "us", LOWER_IS_BETTER, repeat(triad, job).median * 1e6, repetitions);
}

/* `most`: MB/s of the memory of all GPUs; 0: unknown, or not what limits this level. */
static void report_triad(struct result *result, struct job *job, const char *device, const char *level,
                         double most) {
    bool once = !strcmp(level, "memory");
    double seconds = repeat(once ? triad : triads, job).least, starts = once ? 1 : STARTS;
    struct row *row = row_of(result, device, "triad");
    row_text(row, "level", level);
    row_integer(row, "bytes", (long long)(24 * job->elements));
    row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER,
               24 * starts * ranks_sum((double)job->elements) / seconds * 1e-6, repetitions);
    if (most > 0)
        row_limit(row, most);
}

/* How many elements differ, on all ranks: `factor` times what was sent. */
static double wrong(const struct job *job, double factor) {
    size_t count = 0;
    for (size_t i = 0; i < bytes / sizeof(double); i++)
        count += job->to[i] != factor * job->from[i];
    return ranks_sum((double)count);
}

static void check_copy(struct result *result, struct job *job) {
    memset(job->to, 0xff, bytes);
    copy_in(job);
    copy_out(job);
    double errors = wrong(job, 1);
    result_check(result, errors == 0, "copied in and out again", errors, 0);
}

static void check_triad(struct result *result, struct job *job) {
    for (int array = 1; array < 3; array++)
        gpu_copy_in(job->array[array], job->from, bytes, job->stream[0]);
    job->elements = bytes / sizeof(double);
    memset(job->to, 0xff, bytes);
    triad(job);
    copy_out(job);
    double errors = wrong(job, 1.5);
    result_check(result, errors == 0, "triad", errors, 0);
}

static void open_gpu(struct job *job) {
    char why[512] = "";
    bool fine = gpu_open(&job->gpu, why, sizeof why);
    require(fine, "no GPU: %s", why);
    for (int i = 0; i < 3; i++)
        job->array[i] = gpu_take(bytes);
    for (int i = 0; i < 2; i++)
        job->stream[i] = gpu_stream_new();
    job->triad = gpu_load(gpu_triad, "triad");
    memory_need(2 * bytes);
    job->from = memory_take(bytes);
    job->to = memory_take(bytes);
    for (size_t i = 0; i < bytes / sizeof(double); i++)
        job->from[i] = (double)((i + (size_t)program_rank()) % 1000);
}

static void report_triads(struct result *result, struct job *job, const char *device) {
    double l2 = -ranks_max(-(double)job->gpu.l2_bytes);
    report_triad(result, job, device, "memory", limit_of_all(job->share * job->gpu.memory_mbyte_s));
    uint64_t small = (uint64_t)(l2 / 2 / 24);
    if (small > 0 && small < job->elements) {
        job->elements = small;
        report_triad(result, job, device, "l2", 0);
    }
}

/* Copies to a second GPU, where every rank sees one. */
static void report_second(struct result *result, struct job *job, const char *device) {
    struct gpu gpu;
    bool direct = false, there = gpu_open_second(&gpu, &direct);
    if (ranks_max(there ? 0 : 1) > 0)
        return;
    char *seconds = devices(&gpu);
    job->second = gpu_take_second(bytes);
    copy_in(job);
    copy_over(job);
    memset(job->to, 0xff, bytes);
    gpu_copy_in(job->array[0], job->to, bytes, job->stream[0]);
    gpu_copy_back(job->array[0], job->second, bytes, job->stream[0]);
    copy_out(job);
    double errors = wrong(job, 1);
    result_check(result, errors == 0, "copied to the second GPU and back", errors, 0);
    double best = repeat(copy_over, job).least;
    struct row *row = row_of(result, device, "over");
    row_text(row, "second", seconds);
    row_text(row, "path", ranks_max(direct ? 0 : 1) > 0 ? "host" : "direct");
    row_integer(row, "bytes", (long long)bytes);
    row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, (double)bytes * program_ranks() / best * 1e-6,
               repetitions);
    gpu_give_back_second(job->second);
    free(seconds);
}

int main(int argc, char **argv) {
    struct job job = {0};
    program_start(&program, argc, argv);
    bytes -= bytes % sizeof(double);
    job.size = bytes;
    open_gpu(&job);
    job.share = share_of(&job.gpu);
    char *device = devices(&job.gpu);
    struct result *result = result_new();
    check_copy(result, &job);
    report_copies(result, &job, device, "pageable");
    gpu_pin(job.from, bytes);
    gpu_pin(job.to, bytes);
    for (job.size = least; job.size > 0 && job.size < bytes; job.size *= 4)
        report_copies(result, &job, device, "pinned");
    job.size = bytes;
    report_copies(result, &job, device, "pinned");
    report_times(result, &job, device);
    check_triad(result, &job);
    report_triads(result, &job, device);
    report_second(result, &job, device);
    gpu_unpin(job.from);
    gpu_unpin(job.to);
    for (int i = 0; i < 3; i++)
        gpu_give_back(job.array[i]);
    memory_give_back(job.from, bytes);
    memory_give_back(job.to, bytes);
    result_model(result, "triad: clock x width of the GPU's memory; copies: its PCIe link");
    free(device);
    return result_finish(result);
}
