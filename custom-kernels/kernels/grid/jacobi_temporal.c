/* 3D Jacobi with temporal blocking in a shared cache, against the plain solver in the same run. */
#include "fail_together.h"
#include "first_touch.h"
#include "jacobi_case.h"
#include "jacobi_limits.h"
#include "jacobi_modes.h"
#include "jacobi_pipeline.h"
#include "program.h"
#include "result.h"
#include "samples.h"
#include "timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WAVEFRONT, PIPELINED, COLUMNS, ALL_SCHEMES };
enum { BARRIER, RELAXED, BOTH_SYNCS };
enum { MOST_RUNS = 1 + ALL_SCHEMES * (MOST_SIZES + 3) };

static const char *const scheme_choices[] = {"wavefront", "pipelined", "columns", "all", NULL};
static const char *const sync_choices[] = {"barrier", "relaxed", "both", NULL};
static const char *const halo_choices[] = {"nonblocking", "blocking", NULL};
static int scheme_choice = ALL_SCHEMES, sync_choice = BOTH_SYNCS, halo_choice;
static long depth = 8;
static struct sizes lower, upper, tile;

static const struct argument arguments[] = {
    CASE_ARGUMENTS,
    {"--depth", ARGUMENT_INTEGER, &depth, 1, MOST_LEVELS, NULL,
     "sweeps of one pass, and layers of halo for them"},
    {"--scheme", ARGUMENT_CHOICE, &scheme_choice, 0, 0, scheme_choices, "shape of the tiles"},
    {"--sync", ARGUMENT_CHOICE, &sync_choice, 0, 0, sync_choices, "how the threads wait for each other"},
    {"--lower", ARGUMENT_SIZES, &lower, 1, 1e6, NULL,
     "d_l: tiles that a thread stays behind the one before it, at least (relaxed)"},
    {"--upper", ARGUMENT_SIZES, &upper, 1, 1e6, NULL,
     "d_u: the same at most, one value for each of --lower; both empty: 1 and 1, 1 and 4, and from caches"},
    {"--tile", ARGUMENT_SIZES, &tile, 1, 1e6, NULL,
     "rows and planes of a pipelined tile: Y,Z; empty: what fits the caches"},
    {"--halos", ARGUMENT_CHOICE, &halo_choice, 0, 0, halo_choices,
     "MPI_Isend and MPI_Irecv, or MPI_Sendrecv"},
    {.name = NULL},
};

static const struct program program = {
    .name = "jacobi_temporal",
    .summary =
        "3D Jacobi with temporal blocking by a team of threads on a shared cache, against the plain solver",
    .method =
        "The threads of a rank (they should share a cache: one rank on each) do several sweeps, the\n"
        "levels of a pass, on a tile before they go on; each level works one point lower in y and z\n"
        "than the one before it, so that what it reads is done.\n"
        "mode wavefront: a tile is a whole plane, each thread does some of the levels (Wellein, Hager,\n"
        "Zeiser, Wittmann, Fehske, COMPSAC 2009). mode pipelined: a tile is a few rows of a plane,\n"
        "small enough for a private cache (Wittmann, Hager, Treibig, Wellein, Parallel Processing\n"
        "Letters 20, 2010, arXiv:1006.3148). mode columns: as pipelined, but each thread does all\n"
        "levels of every n-th column of tiles, behind the thread in the column before; only rows at the\n"
        "edges of columns go from core to core.\n"
        "sync barrier: all wait for all after each tile. sync relaxed: each thread counts its tiles and\n"
        "stays at least d_l (lower) and at most d_u (upper) tiles behind the one before it (C11\n"
        "atomics, acquire and release). distances caches: d_l such that what a thread wrote has left its\n"
        "private cache for the shared one before the next thread wants it (reading another core's\n"
        "private cache is slow), d_u such that it is still in the shared cache. Columns need no d_u.\n"
        "Halos have as many layers as a pass has sweeps; the layers are swept redundantly, one less\n"
        "each time. They are exchanged along x, then y, then z, so that no diagonal messages are needed\n"
        "(Ding and He, SC 2001). In z and y a periodic dimension of one part is treated in the same\n"
        "way, by a copy.\n"
        "Figures: rate: updates of own points per second, best solution, slowest rank. speedup: plain\n"
        "solver's time over this one's, median over repetitions in which all kinds take turns; the\n"
        "plain solver is that of the kernel jacobi (vector mode, streaming stores).\n"
        "Model: plain: bandwidth of a copy of the grid / 16 bytes. Others: the smaller of that\n"
        "bandwidth * depth / 32 (a pass loads and stores both arrays once) and the rate at which all\n"
        "threads at once sweep private grids of half their private cache, less the redundant share.\n"
        "Bandwidth and rate are measured in the same run.\n"
        "Checks: as for jacobi: exact solution, the same bits for all kinds and repetitions, serial\n"
        "solver.",
    .arguments = arguments,
};

/* One kind of solver. */
struct run {
    int scheme; /* -1: plain */
    struct looseness looseness;
    const char *distances; /* where the looseness comes from */
    double *seconds;       /* by repetition */
    double least_s;
};

/* The two grids and what works on them. Over all ranks: bandwidth in bytes per second, cache_rate in updates
 * per second; `useful` is the fraction of all updates that are of own points. */
struct bench {
    struct grid *plain, *deep;
    struct halo *plain_halo, *deep_halo;
    struct regions regions;
    struct sweep sweep;
    struct pipeline *pipeline;
    double bandwidth, cache_rate, useful;
};

/* The tile of a scheme: whole planes, what was asked for, or what fits. */
static void choose_tile(struct pipeline *pipeline, int scheme) {
    bool columns = scheme == COLUMNS;
    if (scheme == WAVEFRONT)
        pipeline_shape(pipeline, pipeline->grid->size[Y] + 2 * depth, 1, false);
    else if (tile.count)
        pipeline_shape(pipeline, (long)tile.values[0], (long)tile.values[1], columns);
    else
        pipeline_shape(pipeline, pipeline_fitting_rows(pipeline, (int)depth, columns), 1, columns);
}

static bool same(const struct looseness *a, const struct looseness *b) {
    return a->barrier == b->barrier && a->lower == b->lower && a->upper == b->upper;
}

/* Add one kind, unless it is there already: the distances from caches may equal those of another row. */
static void add_run(struct run *runs, int *count, int scheme, struct looseness looseness,
                    const char *distances) {
    for (int index = 0; index < *count; index++)
        if (runs[index].scheme == scheme && same(&runs[index].looseness, &looseness))
            return;
    double *seconds = allocate((size_t)problem.repetitions, sizeof *seconds);
    runs[(*count)++] = (struct run){scheme, looseness, distances, seconds, INFINITY};
}

static void add_relaxed(struct run *runs, int *count, struct pipeline *pipeline, int scheme) {
    for (int index = 0; index < lower.count; index++)
        add_run(runs, count, scheme,
                (struct looseness){false, (long)lower.values[index], (long)upper.values[index]}, "given");
    if (lower.count)
        return;
    add_run(runs, count, scheme, (struct looseness){false, 1, 1}, "given");
    add_run(runs, count, scheme, (struct looseness){false, 1, 4}, "given");
    choose_tile(pipeline, scheme);
    add_run(runs, count, scheme, pipeline_cached_distances(pipeline), "caches");
}

/* Columns have no upper distance, and no barrier. */
static void add_columns(struct run *runs, int *count) {
    for (int index = 0; index < lower.count; index++)
        add_run(runs, count, COLUMNS, (struct looseness){false, (long)lower.values[index], 0}, "given");
    if (lower.count == 0)
        add_run(runs, count, COLUMNS, (struct looseness){false, 1, 0}, "given");
}

static int make_runs(struct run *runs, struct pipeline *pipeline) {
    int count = 0;
    add_run(runs, &count, -1, (struct looseness){.barrier = false}, "none");
    for (int scheme = WAVEFRONT; scheme <= PIPELINED; scheme++) {
        if (scheme_choice != ALL_SCHEMES && scheme != scheme_choice)
            continue;
        if (sync_choice != RELAXED)
            add_run(runs, &count, scheme, (struct looseness){.barrier = true}, "none");
        if (sync_choice != BARRIER)
            add_relaxed(runs, &count, pipeline, scheme);
    }
    if (sync_choice != BARRIER && (scheme_choice == ALL_SCHEMES || scheme_choice == COLUMNS))
        add_columns(runs, &count);
    return count;
}

static int plain_solve(struct bench *bench) {
    int from = 0;
    for (long sweep = 0; sweep < problem.sweeps; sweep++, from = 1 - from)
        mode_sweep(VECTOR, bench->plain_halo, from, &bench->regions, &bench->sweep, program_threads());
    return from;
}

static int temporal_solve(struct bench *bench) {
    int from = 0;
    for (long done = 0; done < problem.sweeps;) {
        long left = problem.sweeps - done, levels = left < depth ? left : depth;
        halo_exchange(bench->deep_halo, from);
        pipeline_pass(bench->pipeline, from, (int)levels);
        from = (int)((from + levels) % 2);
        done += levels;
    }
    return from;
}

/* One solution from the start, timed, and what came out. */
static struct findings solve(struct bench *bench, struct run *run, long repetition) {
    bool plain = run->scheme < 0;
    struct grid *grid = plain ? bench->plain : bench->deep;
    if (!plain) {
        bench->pipeline->looseness = run->looseness;
        choose_tile(bench->pipeline, run->scheme);
    }
    grid_start(grid, program_threads());
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
    int now = plain ? plain_solve(bench) : temporal_solve(bench);
    run->seconds[repetition] = case_seconds(begin);
    run->least_s = fmin(run->least_s, run->seconds[repetition]);
    halo_exchange(plain ? bench->plain_halo : bench->deep_halo, now);
    return grid_findings(grid, now, problem.sweeps, program_threads());
}

/* Own points as a share of all that a pass sweeps, over all ranks. */
static double useful_share(const struct bench *bench) {
    struct pass pass = pass_make(bench->pipeline, (int)depth);
    struct box own = grid_inside(bench->deep);
    double points[2] = {(double)depth * (double)box_points(&own), 0.0};
    for (int level = 1; level <= depth; level++)
        points[1] += (double)box_points(&pass.valid[level]);
    MPI_Allreduce(MPI_IN_PLACE, points, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return points[0] / points[1];
}

static double model(const struct bench *bench, const struct run *run) {
    if (run->scheme < 0)
        return bench->bandwidth / sweep_bytes(true);
    double memory = bench->bandwidth * (double)depth / 32.0;
    return fmin(memory, bench->cache_rate) * bench->useful;
}

/* Median over the repetitions of the plain solver's time over this one's. */
static double speedup(const struct run *plain, const struct run *run) {
    double *ratios = allocate((size_t)problem.repetitions, sizeof *ratios);
    for (long repetition = 0; repetition < problem.repetitions; repetition++)
        ratios[repetition] = plain->seconds[repetition] / run->seconds[repetition];
    double median = summarize(ratios, (size_t)problem.repetitions).median;
    free(ratios);
    return median;
}

static void report(struct result *result, struct bench *bench, const struct run *plain,
                   const struct run *run) {
    struct row *row = result_row(result);
    const struct looseness *loose = &run->looseness;
    double updates = case_points(&bench->deep->plan) * (double)problem.sweeps;
    bool temporal = run->scheme >= 0;
    row_text(row, "size", case_size_text(&bench->deep->plan));
    row_text(row, "boundary", boundary_names[problem.boundary]);
    row_integer(row, "ranks", program_ranks());
    row_integer(row, "threads", program_threads());
    row_text(row, "mode", temporal ? scheme_choices[run->scheme] : "plain");
    row_text(row, "sync", !temporal ? "none" : sync_choices[loose->barrier ? BARRIER : RELAXED]);
    row_text(row, "distances", run->distances);
    row_integer(row, "depth", temporal ? depth : 1);
    row_integer(row, "lower", loose->lower);
    row_integer(row, "upper", loose->upper);
    row_figure(row, "rate", "MLUP/s", HIGHER_IS_BETTER, updates / run->least_s / 1e6, problem.repetitions);
    row_limit(row, model(bench, run) / 1e6);
    row_figure(row, "speedup", "1", HIGHER_IS_BETTER, speedup(plain, run), problem.repetitions);
}

static void measure(struct result *result, struct bench *bench) {
    struct run runs[MOST_RUNS];
    struct agreement agreement = {.solutions = 0};
    int count = make_runs(runs, bench->pipeline);
    grid_start(bench->plain, program_threads());
    for (long repetition = 0; repetition < problem.repetitions; repetition++) {
        bench->bandwidth = fmax(bench->bandwidth, limits_bandwidth(bench->plain, program_threads(), true));
        bench->cache_rate = fmax(bench->cache_rate, limits_cache_rate(bench->deep, program_threads()));
        for (int index = 0; index < count; index++) {
            struct findings findings = solve(bench, &runs[index], repetition);
            agreement_add(&agreement, &findings);
        }
    }
    bench->useful = useful_share(bench);
    for (int index = 0; index < count; index++)
        report(result, bench, &runs[0], &runs[index]);
    result_model(
        result,
        "copy of the grid %.0f MB/s; memory limit %.0f MLUP/s plain, %.0f with %ld sweeps a pass; in "
        "private caches %.0f MLUP/s; %.1f %% of the updates are of own points",
        bench->bandwidth / 1e6, bench->bandwidth / sweep_bytes(true) / 1e6,
        bench->bandwidth * (double)depth / 32e6, depth, bench->cache_rate / 1e6, 100.0 * bench->useful);
    case_check(result, &bench->deep->plan, &agreement);
    for (int index = 0; index < count; index++)
        free(runs[index].seconds);
}

static void check_options(void) {
    require(program_threads() <= depth,
            "%d threads are more than the %ld sweeps of a pass: give fewer threads or a larger --depth",
            program_threads(), depth);
    require_threads(program_threads());
    if (tile.count != 0 && tile.count != 2)
        fail_together("--tile: %d sizes given, it takes two: rows and planes", tile.count);
    if (scheme_choice == COLUMNS && sync_choice == BARRIER)
        fail_together("--scheme columns has no --sync barrier: choose relaxed");
    if (lower.count != upper.count)
        fail_together("--lower has %d values and --upper %d: give as many of both", lower.count, upper.count);
    for (int index = 0; index < upper.count; index++)
        if (upper.values[index] < lower.values[index])
            fail_together("--upper %zu is below --lower %zu: the threads would wait for each other for ever",
                          upper.values[index], lower.values[index]);
}

static void set_up(struct bench *bench, const struct grid_plan *plain, const struct grid_plan *deep) {
    bench->plain = grid_make(plain, program_rank());
    bench->deep = grid_make(deep, program_rank());
    bench->plain_halo = halo_make(bench->plain, false, halo_choice);
    bench->deep_halo = halo_make(bench->deep, true, halo_choice);
    bench->sweep = sweep_plain(bench->plain, program_threads(), true);
    bench->regions = regions_make(bench->plain, &bench->sweep, program_threads());
    bench->pipeline = pipeline_make(bench->deep, program_threads());
    choose_tile(bench->pipeline, PIPELINED);
}

static void tear_down(struct bench *bench) {
    pipeline_free(bench->pipeline);
    regions_free(&bench->regions);
    halo_free(bench->deep_halo);
    halo_free(bench->plain_halo);
    grid_free(bench->deep);
    grid_free(bench->plain);
}

int main(int argc, char **argv) {
    const bool closed[DIMENSIONS] = {true, true, true}, closed_x[DIMENSIONS] = {true, false, false};
    problem.size = (struct sizes){1, {case_edge()}};
    problem.sweeps = 16;
    problem.repetitions = 3;
    program_start(&program, argc, argv);
    check_options();
    struct grid_plan deep = case_plan(depth, closed_x), plain = deep;
    plain.depth = 1;
    memcpy(plain.wrap, closed, sizeof plain.wrap);
    memory_need(grid_bytes(&plain, program_rank()) + grid_bytes(&deep, program_rank()) +
                case_serial_bytes(&deep));
    struct bench bench = {0};
    set_up(&bench, &plain, &deep);
    struct result *result = result_new();
    measure(result, &bench);
    tear_down(&bench);
    return result_finish(result);
}
