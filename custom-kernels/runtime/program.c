#include "program.h"

#include "fail_together.h"
#include "rank_variables.h"
#include "timer.h"
#include "work.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const struct program *program;
    int rank, ranks, level;
    MPI_Comm node;
    bool json, help;
} self;

static const struct argument common[] = {
    {"--json", ARGUMENT_FLAG, &self.json, 0, 0, NULL,
     "write the result as one JSON document instead of a table"},
    {"--help", ARGUMENT_FLAG, &self.help, 0, 0, NULL, "this text"},
    {.name = NULL},
};

const struct program *program_facts(void) {
    return self.program;
}

int program_rank(void) {
    return self.rank;
}

int program_ranks(void) {
    return self.ranks;
}

int program_threads(void) {
    return omp_get_max_threads();
}

void require_threads(int threads) {
    int given = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(threads) reduction(+ : given)
    given += 1;
    require(given == threads, "%d threads asked, the OpenMP library gives %d: see OMP_THREAD_LIMIT", threads,
            given);
}

MPI_Comm program_node(void) {
    return self.node;
}

double ranks_max(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

double ranks_sum(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

bool program_json(void) {
    return self.json;
}

static const char *level_name(int level) {
    return level == MPI_THREAD_MULTIPLE     ? "multiple"
           : level == MPI_THREAD_SERIALIZED ? "serialized"
           : level == MPI_THREAD_FUNNELED   ? "funneled"
                                            : "single";
}

const char *program_level(void) {
    return level_name(self.level);
}

/* The kernel's options and the common ones in one table. */
static struct argument *whole_table(const struct argument *own) {
    size_t count = 0;
    while (own[count].name)
        count++;
    size_t more = sizeof common / sizeof *common;
    struct argument *table = allocate(count + more, sizeof *table);
    memcpy(table, own, count * sizeof *table);
    memcpy(table + count, common, sizeof common);
    return table;
}

static _Noreturn void help(const struct program *program, const struct argument *table) {
    /* Under a launcher only rank 0 prints; MPI need not be started for it. */
    if (told_by_launcher(RANK) <= 0) {
        printf("%s: %s\n\nusage: mpirun -n RANKS %s [OPTION...]\n\n", program->name, program->summary,
               program->name);
        arguments_help(table, stdout);
        printf("\n%s\n\nExit status: 0 fine, 1 a result that is not correct, 2 bad input.\n",
               program->method);
    }
    exit(EXIT_SUCCESS);
}

void program_start(const struct program *program, int argc, char **argv) {
    char why[1024] = "";
    self.program = program;
    fail_aborts_all_ranks();
    struct argument *table = whole_table(program->arguments);
    bool fine = arguments_read(table, argc, argv, why, sizeof why);
    if (fine && self.help)
        help(program, table);
    free(table);
    int wanted = fine && program->thread_level ? program->thread_level() : MPI_THREAD_FUNNELED;
    MPI_Init_thread(&argc, &argv, wanted, &self.level);
    if (program->narrows_profile)
        MPI_Pcontrol(0);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
    if (!fine)
        fail_together("%s", why);
    const char *threads = getenv("OMP_NUM_THREADS");
    if (threads && (atoi(threads) < 1))
        fail_together("OMP_NUM_THREADS: '%s' is not a whole number of at least 1", threads);
    if (self.level < wanted)
        fail_together(
            "the MPI library gives thread level '%s', '%s' is needed: choose another library or level",
            level_name(self.level), level_name(wanted));
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &self.node);
    timer_start();
    if (program->work)
        work_open();
}
