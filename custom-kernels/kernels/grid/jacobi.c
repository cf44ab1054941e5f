/* 3D Jacobi: pure MPI, and the hybrid vector and task modes, against the bandwidth of memory. */
#include "fail_together.h"
#include "first_touch.h"
#include "jacobi_case.h"
#include "jacobi_limits.h"
#include "jacobi_modes.h"
#include "program.h"
#include "result.h"
#include "timer.h"
#include "work.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

enum { ALL_MODES = MODES, BOTH_HALOS = 2, MOST_RUNS = MODES * 2 };
enum { STREAMING, REGULAR };
/* Of an update: five additions and a product. */
enum { UPDATE_FLOP = 6 };

static const char *const mode_choices[] = {"pure",         "vector",      "task-split", "task-tasks",
                                           "task-dynamic", "task-nested", "all",        NULL};
static const char *const halo_choices[] = {"nonblocking", "blocking", "both", NULL};
static const char *const store_choices[] = {"streaming", "regular", NULL};
/* Parts of a rate: below the first a remark says what limits, from the second on two rates are the same. */
static const double ENOUGH = 0.90, SAME = 0.95;
static int mode_choice = ALL_MODES, halo_choice, store_choice = STREAMING;
static long block;

static const struct argument arguments[] = {
    CASE_ARGUMENTS,
    {"--mode", ARGUMENT_CHOICE, &mode_choice, 0, 0, mode_choices, "how ranks and threads share the work"},
    {"--halos", ARGUMENT_CHOICE, &halo_choice, 0, 0, halo_choices,
     "MPI_Isend and MPI_Irecv, or MPI_Sendrecv"},
    {"--stores", ARGUMENT_CHOICE, &store_choice, 0, 0, store_choices, "stores past the caches, or not"},
    {"--block", ARGUMENT_INTEGER, &block, 0, 1e6, NULL,
     "rows swept through all planes before the next ones; 0: what fits the caches"},
    {.name = NULL},
};

/* With tasks, any thread may communicate, though only one at a time. */
static int thread_level(void) {
    return mode_choice == TASK_TASKS || mode_choice == ALL_MODES ? MPI_THREAD_SERIALIZED
                                                                 : MPI_THREAD_FUNNELED;
}

static const struct program program = {
    .name = "jacobi",
    .summary = "3D Jacobi solver in the hybrid modes of MPI and OpenMP, against the bandwidth of memory",
    .method =
        "A sweep replaces each point by the mean of its six neighbours (Jacobi for the 7-point\n"
        "Laplacian).\n"
        "Modes: pure: one thread a rank. vector: halo exchange outside the parallel region, then all\n"
        "threads compute. task-split: thread 0 exchanges and does the points that waited for it, the\n"
        "others have equal shares of the rest. task-tasks: the exchange is one OpenMP task among the\n"
        "blocks of the grid. task-dynamic: thread 0 exchanges, then joins a dynamic loop over the\n"
        "blocks. task-nested: two threads, of which one exchanges and the other starts a team of the rest\n"
        "in each sweep. Source: Wittmann, Wellein, Hager et al., MPI+OpenMP hybrid computing, Speedup "
        "Workshop,\n"
        "Zurich 2010; modes: Rabenseifner and Wellein, Int. J. High Perf. Comp. Appl. 17(1), 2003.\n"
        "Figure: updates of points per second of the best solution, slowest rank. Model: bandwidth of a\n"
        "copy of the same arrays by the same threads in the same run, divided by the bytes of an\n"
        "update: 16 with streaming stores, 24 without, provided that three layers stay in the cache\n"
        "(rows are blocked for it). Halo exchange is not in the model. Nor are the cores: the model\n"
        "holds where enough of them share a memory. cached is the rate of the same threads on grids in\n"
        "their private caches; a core that cannot load from memory and compute at the same time reaches\n"
        "1 / (1/model + 1/cached) at most.\n"
        "Checks: the start is a plane and an eigenmode of the sweep, so the exact solution is known;\n"
        "residual and checksum of all bits agree between all modes and repetitions, and with a serial\n"
        "solver (small grids, or --verify). Neither depends on the order of points, so they are the\n"
        "same for any number of ranks and threads.",
    .arguments = arguments,
    .thread_level = thread_level,
    .work = true,
};

/* One combination that is measured. Over all ranks: bandwidth in bytes per second, cache_rate in updates per
 * second. */
struct run {
    enum mode mode;
    bool blocking;
    int threads;
    struct sweep sweep;
    struct regions regions;
    struct halo *halo;
    double best_s, bandwidth, cache_rate;
};

static int make_runs(const struct grid *grid, struct run *runs) {
    int count = 0;
    for (int mode = 0; mode < MODES; mode++)
        for (int blocking = 0; blocking < 2; blocking++) {
            if ((mode_choice != ALL_MODES && mode != mode_choice) ||
                (halo_choice != BOTH_HALOS && blocking != halo_choice))
                continue;
            struct run *run = &runs[count++];
            int threads = mode == PURE ? 1 : program_threads();
            *run = (struct run){.mode = (enum mode)mode, .blocking = blocking, .threads = threads};
            run->sweep = sweep_plain(grid, threads, store_choice == STREAMING);
            if (block)
                run->sweep.block = block;
            run->regions = regions_make(grid, &run->sweep, threads);
            run->halo = halo_make(grid, false, blocking);
            run->best_s = INFINITY;
        }
    return count;
}

/* One solution from the start, timed, and what came out. */
static struct findings solve(struct grid *grid, struct run *run) {
    int full = program_threads(), from = 0;
    omp_set_num_threads(run->threads);
    run->bandwidth = fmax(run->bandwidth, limits_bandwidth(grid, run->threads, run->sweep.streaming));
    run->cache_rate = fmax(run->cache_rate, limits_cache_rate(grid, run->threads));
    grid_start(grid, run->threads);
    const struct box own = grid_inside(grid);
    const double updates = (double)problem.sweeps * (double)box_points(&own);
    work_begin();
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
    for (long sweep = 0; sweep < problem.sweeps; sweep++, from = 1 - from)
        mode_sweep(run->mode, run->halo, from, &run->regions, &run->sweep, run->threads);
    run->best_s = fmin(run->best_s, case_seconds(begin));
    work_end(UPDATE_FLOP * updates, sweep_bytes(run->sweep.streaming) * updates);
    omp_set_num_threads(full);
    halo_exchange(run->halo, from);
    return grid_findings(grid, from, problem.sweeps, full);
}

/* What limits a run below the model, by what was measured beside it: memory, and the cores' own work. */
static void note_limit(struct result *result, const struct run *run, double rate, double model) {
    const double in_turn = 1.0 / (1.0 / model + 1.0 / run->cache_rate);
    if (rate >= ENOUGH * model)
        return;
    result_remark(
        result,
        "%s: %.0f %% of the model; memory alone allows %.0f MLUP/s, the cores alone %.0f, one after "
        "the other %.0f: %s",
        mode_names[run->mode], 100.0 * rate / model, model / 1e6, run->cache_rate / 1e6, in_turn / 1e6,
        rate >= SAME * in_turn && run->cache_rate >= rate
            ? "too few cores to hide their own work behind memory"
            : "halos, waiting threads or a disturbed machine take the rest");
}

static void report(struct result *result, const struct grid *grid, const struct run *run) {
    struct row *row = result_row(result);
    double updates = case_points(&grid->plan) * (double)problem.sweeps;
    const double model = run->bandwidth / sweep_bytes(run->sweep.streaming);
    row_text(row, "size", case_size_text(&grid->plan));
    row_text(row, "boundary", boundary_names[problem.boundary]);
    row_integer(row, "ranks", program_ranks());
    row_integer(row, "threads", run->threads);
    row_text(row, "mode", mode_names[run->mode]);
    row_text(row, "halos", halo_choices[run->blocking]);
    row_text(row, "stores", store_choices[store_choice]);
    row_figure(row, "rate", "MLUP/s", HIGHER_IS_BETTER, updates / run->best_s / 1e6, problem.repetitions);
    row_limit(row, model / 1e6);
    row_figure(row, "cached", "MLUP/s", HIGHER_IS_BETTER, run->cache_rate / 1e6, problem.repetitions);
    row_figure(row, "bandwidth", "MB/s", HIGHER_IS_BETTER, run->bandwidth / 1e6, problem.repetitions);
    note_limit(result, run, updates / run->best_s, model);
}

static void measure(struct result *result, struct grid *grid) {
    struct run runs[MOST_RUNS];
    struct agreement agreement = {.solutions = 0};
    int count = make_runs(grid, runs);
    grid_start(grid, program_threads());
    for (long repetition = 0; repetition < problem.repetitions; repetition++)
        for (int index = 0; index < count; index++) {
            struct findings findings = solve(grid, &runs[index]);
            agreement_add(&agreement, &findings);
        }
    for (int index = 0; index < count; index++)
        report(result, grid, &runs[index]);
    case_check(result, &grid->plan, &agreement);
    for (int index = 0; index < count; index++) {
        halo_free(runs[index].halo);
        regions_free(&runs[index].regions);
    }
}

int main(int argc, char **argv) {
    const bool wrap[DIMENSIONS] = {true, true, true};
    problem.size = (struct sizes){1, {case_edge()}};
    problem.sweeps = 8;
    problem.repetitions = 3;
    program_start(&program, argc, argv);
    struct grid_plan plan = case_plan(1, wrap);
    memory_need(grid_bytes(&plan, program_rank()) + case_serial_bytes(&plan));
    struct grid *grid = grid_make(&plan, program_rank());
    struct result *result = result_new();
    bool streaming = store_choice == STREAMING;
    result_model(result, "%.0f bytes an update at the bandwidth of a copy of the grid, measured in this run",
                 sweep_bytes(streaming));
    if (streaming && sweep_bytes(true) > 16.0)
        result_note(result, "this build has no streaming stores: regular ones were used");
    measure(result, grid);
    grid_free(grid);
    return result_finish(result);
}
