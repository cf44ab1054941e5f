/* Memory bandwidth: STREAM's kernels and more, with stores through the cache and past it. */
#include "fail_together.h"
#include "first_touch.h"
#include "hardware.h"
#include "hugepages.h"
#include "membw_kernels.h"
#include "program.h"
#include "result.h"
#include "share.h"
#include "simd.h"
#include "timer.h"
#include "work.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum stores { BOTH, REGULAR, STREAMING };
enum { CHOICE_ALL, CHOICE_STREAM, CHOICE_BOUNDS, CHOICE_FIRST };

static size_t size;
static long repetitions = 20, sweeps = 1;
static int chosen = CHOICE_ALL, stores = BOTH, pages;
static bool alone;

static const char *const kernel_words[] = {"all",   "stream", "bounds", "copy", "scale", "add", "triad",
                                           "daxpy", "triad5", "store",  "load", "sum",   NULL};
static const char *const store_words[] = {"both", "regular", "streaming", NULL};
static const char *const page_words[] = {"huge", "normal", NULL};

static const struct argument arguments[] = {
    {"--size", ARGUMENT_SIZE, &size, 0, 1e13, NULL,
     "elements of each array and rank; 0: 4 x all last-level caches / ranks of the node"},
    {"--kernels", ARGUMENT_CHOICE, &chosen, 0, 0, kernel_words,
     "what to run; stream: copy to triad, bounds: copy, triad and load"},
    {"--stores", ARGUMENT_CHOICE, &stores, 0, 0, store_words, "through the cache, past it, or both"},
    {"--pages", ARGUMENT_CHOICE, &pages, 0, 0, page_words, "ask the kernel for huge pages, or do not"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 2, 1000, NULL,
     "of every kernel; the first one is not counted"},
    {"--sweeps", ARGUMENT_INTEGER, &sweeps, 1, 1e9, NULL,
     "of a repetition: how often each thread goes over its share, for arrays that fit a cache"},
    {"--alone", ARGUMENT_FLAG, &alone, 0, 0, NULL,
     "the first thread of each rank alone, too, for the saturation; not of daxpy"},
    {.name = NULL},
};

static const struct program program = {
    .name = "membw",
    .summary = "memory bandwidth by kernel and kind of store",
    .method = "Kernels, with the bytes per element that count, as STREAM counts them:\n"
              "  copy   c = a           16    daxpy   d = d + s a      24    load  reads a   8\n"
              "  scale  b = s c         16    triad5  e = a b + c d    40    sum   sum of a  8\n"
              "  add    c = a + b       24    store   c = s             8\n"
              "  triad  a = b + s c     24\n"
              "Every repetition runs all kernels in turn between barriers of all ranks and lasts until the\n"
              "slowest rank is done; the rates of the ranks are therefore those of the same window, and\n"
              "added.\n"
              "bandwidth: all bytes counted / shortest repetition (STREAM's rule; the first one is left\n"
              "out). bandwidth_mean: the same by the mean repetition, as likwid-bench reports.\n"
              "traffic: what memory moves if every regular store first brings its line into the cache\n"
              "(write allocate, 8 bytes per element more); streaming stores go past the cache. Processors\n"
              "that notice whole-line stores move less than that.\n"
              "Model: no kernel streams faster than the fastest of the run. Percentages are of that one;\n"
              "write allocate leaves copy and scale 67 % of it, add and triad 75 %, triad5 83 %, store 50\n"
              "%.\n"
              "saturation: the rate of all threads by that of the first thread of each rank alone, on its\n"
              "share: about so many threads of a rank saturate its memory.\n"
              "working_set: the bytes of the arrays that a repetition goes over, on all ranks.\n"
              "Every thread touches its share first. Where the memory lies beyond that is decided from\n"
              "outside: plumb-bind --memory. Check: every element, against the same steps on one number, by\n"
              "STREAM's rule (mean relative error below 1e-13), and the sum against its value; load leaves\n"
              "nothing to check.\n"
              "Sources: J. D. McCalpin, STREAM 5.10; likwid-bench; RRZE-HPC TheBandwidthBenchmark.",
    .arguments = arguments,
    .work = true,
};

/* One kernel with one kind of store, and what it took: the slowest rank of every repetition, in s; `alone`
 * with one thread of each rank. */
struct test {
    enum kernel kernel;
    bool streaming;
    double *seconds, *alone;
    double sum; /* of the newest repetition, on this rank */
};

static bool selected(enum kernel kernel) {
    if (chosen == CHOICE_ALL)
        return true;
    if (chosen == CHOICE_STREAM)
        return kernel <= TRIAD;
    if (chosen == CHOICE_BOUNDS)
        return kernel == COPY || kernel == TRIAD || kernel == LOAD;
    return (int)kernel == chosen - CHOICE_FIRST;
}

static void add_test(struct test *tests, int *count, enum kernel kernel, bool streaming) {
    size_t room = (size_t)repetitions;
    tests[(*count)++] = (struct test){kernel, streaming, allocate(room, sizeof(double)),
                                      alone ? allocate(room, sizeof(double)) : NULL, 0.0};
}

static int choose_tests(struct test *tests) {
    int count = 0;
    if (stores == STREAMING && !SIMD_STREAMS)
        fail_together("no streaming stores in this build (%s): use --stores regular", SIMD_NAME);
    if (alone && selected(DAXPY))
        fail_together("--alone: daxpy changes what it reads: use --kernels triad");
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        if (!selected(kernel))
            continue;
        bool writes = kernel_facts[kernel].stores > 0;
        if (!writes || stores != STREAMING)
            add_test(tests, &count, kernel, false);
        if (writes && stores != REGULAR && SIMD_STREAMS)
            add_test(tests, &count, kernel, true);
    }
    return count;
}

/* Elements of an array of this rank. */
static size_t elements(void) {
    int ranks;
    MPI_Comm_size(program_node(), &ranks);
    size_t wanted = size ? size : 4 * all_last_caches_bytes() / sizeof(double) / (size_t)ranks;
    return (wanted + PAGE_ELEMENTS - 1) / PAGE_ELEMENTS * PAGE_ELEMENTS;
}

static void take(struct arrays *arrays, int count, size_t length) {
    memory_need((size_t)count * length * sizeof(double));
    for (int array = 0; array < count; array++)
        arrays->at[array] =
            pages ? memory_take(length * sizeof(double)) : memory_take_huge(length * sizeof(double));
#pragma omp parallel
    {
        struct share own = share_of(length, PAGE_ELEMENTS, omp_get_thread_num(), omp_get_num_threads());
        for (int array = 0; array < count; array++)
            for (size_t i = own.begin; i < own.end; i++)
                arrays->at[array][i] = first_values[array];
    }
}

static double bytes_counted(const struct test *test) {
    const struct kernel_facts *facts = &kernel_facts[test->kernel];
    return 8.0 * (facts->loads + facts->stores);
}

static double bytes_moved(const struct test *test) {
    return bytes_counted(test) + (test->streaming ? 0.0 : 8.0 * kernel_facts[test->kernel].allocated);
}

/* Elements of the share of the first thread. */
static size_t first_share(size_t length) {
    return share_of(length, PAGE_ELEMENTS, 0, omp_get_max_threads()).end;
}

/* One repetition of one test by so many threads, each on its share: its time on this rank, in s per sweep. */
static double run(struct test *test, const struct arrays *arrays, size_t length, int threads) {
    double sum = 0.0;
    int all = omp_get_max_threads();
    work_begin();
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        int parts = threads < all ? all : omp_get_num_threads();
        struct share own = share_of(length, PAGE_ELEMENTS, omp_get_thread_num(), parts);
        for (long sweep = 0; sweep < sweeps; sweep++)
            sum = kernel_run(test->kernel, test->streaming, arrays, own.begin, own.end);
    }
    double seconds = ticks_s(ticks() - begin) / (double)sweeps;
    size_t swept = threads < all ? first_share(length) : length;
    work_end(0.0, (double)sweeps * (double)swept * bytes_moved(test));
    if (threads == all)
        test->sum = sum;
    return seconds;
}

/* Collective: the longest time of a rank in each repetition. */
static void ranks_most(double *seconds) {
    MPI_Allreduce(MPI_IN_PLACE, seconds, (int)repetitions, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void run_all(struct test *tests, int count, const struct arrays *arrays, size_t length) {
    for (long repetition = 0; repetition < repetitions; repetition++)
        for (int test = 0; test < count; test++) {
            tests[test].seconds[repetition] = run(&tests[test], arrays, length, omp_get_max_threads());
            if (alone) /* the same stores again */
                tests[test].alone[repetition] = run(&tests[test], arrays, length, 1);
        }
    for (int test = 0; test < count; test++) {
        ranks_most(tests[test].seconds);
        if (alone)
            ranks_most(tests[test].alone);
    }
}

/* Bytes per element of the arrays that a test goes over: those that it reads, and those that it only
 * writes. */
static double bytes_swept(const struct test *test) {
    return 8.0 * (kernel_facts[test->kernel].loads + kernel_facts[test->kernel].allocated);
}

static void times(const double *seconds, double *least, double *mean) {
    *least = INFINITY, *mean = 0.0;
    for (long repetition = 1; repetition < repetitions; repetition++) {
        *least = fmin(*least, seconds[repetition]);
        *mean += seconds[repetition] / (double)(repetitions - 1);
    }
}

/* Rows in MB/s; `everywhere` elements of one array on all ranks together, `first` those of their first
 * threads. */
static void report(struct result *result, const struct test *tests, int count, double everywhere,
                   double first) {
    double least, mean, largest = 0.0, single;
    for (int index = 0; index < count; index++) {
        times(tests[index].seconds, &least, &mean);
        largest = fmax(largest, everywhere * bytes_counted(&tests[index]) / least * 1e-6);
    }
    for (int index = 0; index < count; index++) {
        const struct test *test = &tests[index];
        double counted = bytes_counted(test), moved = bytes_moved(test);
        times(test->seconds, &least, &mean);
        struct row *row = result_row(result);
        row_text(row, "kernel", kernel_facts[test->kernel].name);
        row_text(row, "mode",
                 kernel_facts[test->kernel].stores == 0 ? "loads"
                 : test->streaming                      ? "streaming"
                                                        : "regular");
        row_integer(row, "working_set", (long long)(everywhere * bytes_swept(test)));
        row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, everywhere * counted / least * 1e-6,
                   repetitions - 1);
        if (count > 1)
            row_limit(row, largest);
        row_figure(row, "bandwidth_mean", "MB/s", HIGHER_IS_BETTER, everywhere * counted / mean * 1e-6,
                   repetitions - 1);
        row_figure(row, "traffic", "MB/s", HIGHER_IS_BETTER, everywhere * moved / least * 1e-6,
                   repetitions - 1);
        if (alone) {
            times(test->alone, &single, &mean);
            row_figure(row, "saturation", "1", HIGHER_IS_BETTER, everywhere / least * single / first,
                       repetitions - 1);
        }
    }
}

/* STREAM's rule for one array: the mean deviation from the value that all elements must have. */
static void check_array(struct result *result, const struct arrays *arrays, int array, size_t length,
                        double expected) {
    static const char *const names[ARRAYS] = {"array a", "array b", "array c", "array d", "array e"};
    double deviation = 0.0;
#pragma omp parallel for reduction(+ : deviation) schedule(static)
    for (size_t i = 0; i < length; i++)
        deviation += fabs(arrays->at[array][i] - expected);
    double error = ranks_max(deviation / (double)length / fabs(expected));
    result_check(result, error < 1e-13, names[array], error, 1e-13);
}

/* A sum of n numbers in a few chains is off by less than n units of rounding. */
static void check_sum(struct result *result, const struct test *test, double expected, size_t length) {
    double error = ranks_max(fabs(test->sum / (expected * (double)length) - 1.0));
    double tolerance = 1.2e-16 * (double)length;
    result_check(result, error <= tolerance, "sum of a", error, tolerance);
}

static void check(struct result *result, const struct test *tests, int count, const struct arrays *arrays,
                  int used, size_t length) {
    double element[ARRAYS], at_sum = 0.0;
    memcpy(element, first_values, sizeof element);
    for (long repetition = 0; repetition < repetitions; repetition++)
        for (int test = 0; test < count; test++) {
            for (long sweep = 0; sweep < sweeps; sweep++)
                kernel_expect(tests[test].kernel, element);
            if (tests[test].kernel == SUM)
                at_sum = element[A];
        }
    for (int array = 0; array < used; array++)
        check_array(result, arrays, array, length, element[array]);
    for (int test = 0; test < count; test++)
        if (tests[test].kernel == SUM)
            check_sum(result, &tests[test], at_sum, length);
}

/* Collective: whether the part of an array that lies on some node may stay in the caches of that node. */
static bool nearly_cached(size_t length) {
    double here = (double)length * sizeof(double);
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_DOUBLE, MPI_SUM, program_node());
    return ranks_max(here < 4.0 * (double)all_last_caches_bytes()) > 0.0;
}

static void notes(struct result *result, size_t length, int used, double everywhere) {
    result_model(
        result, "the fastest kernel of the run, in bytes counted; write allocate moves more than is counted");
    result_note(result, "%d arrays of %.4g MB in all, %s%s; %.0f of %.0f MB on huge pages on rank 0", used,
                everywhere * 8e-6, SIMD_NAME, SIMD_STREAMS ? "" : ", no streaming stores in this build",
                (double)huge_pages_used() * 1e-6, (double)length * (double)used * 8e-6);
    if (nearly_cached(length))
        result_note(result, "each array is smaller than 4 x the last-level caches of a node: this is not the "
                            "bandwidth of memory alone");
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    struct test tests[2 * KERNELS];
    struct arrays arrays = {{NULL}};
    int used = 0, count = choose_tests(tests);
    size_t length = elements();
    for (int test = 0; test < count; test++)
        used =
            kernel_facts[tests[test].kernel].arrays > used ? kernel_facts[tests[test].kernel].arrays : used;
    take(&arrays, used, length);
    double everywhere = ranks_sum((double)length);
    run_all(tests, count, &arrays, length);
    struct result *result = result_new();
    report(result, tests, count, everywhere, ranks_sum((double)first_share(length)));
    notes(result, length, used, everywhere);
    check(result, tests, count, &arrays, used, length);
    for (int array = 0; array < used; array++)
        memory_give_back(arrays.at[array], length * sizeof(double));
    for (int test = 0; test < count; test++) {
        free(tests[test].seconds);
        free(tests[test].alone);
    }
    return result_finish(result);
}
