#include "launcher.h"

#include "fail.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

static bool read_variable(const char *name, unsigned *value) {
    const char *given = name ? getenv(name) : NULL;
    if (!given)
        return false;
    if (!parse_number(given, value))
        fail("environment: %s='%s' is not a number", name, given);
    return true;
}

/* A job on a single node: all its tasks are local. */
static bool flux_size(unsigned *size) {
    unsigned nodes;
    return read_variable("FLUX_JOB_NNODES", &nodes) && nodes == 1 && read_variable("FLUX_JOB_SIZE", size);
}

static bool take_digits(const char **at, unsigned *value) {
    char digits[16] = "";
    size_t length = strspn(*at, "0123456789");
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, *at, length);
    *at += length;
    return parse_number(digits, value);
}

/* Read one "2(x3)" or "1": `tasks` on each of `nodes` nodes. */
static bool take_group(const char **at, unsigned *tasks, unsigned *nodes) {
    *nodes = 1;
    if (!take_digits(at, tasks))
        return false;
    if (strncmp(*at, "(x", 2))
        return true;
    *at += 2;
    return take_digits(at, nodes) && *(*at)++ == ')';
}

/* Tasks of node `node` in Slurm's list, such as "2(x3),1": three nodes with two tasks, then one with one. */
static bool tasks_of_node(const char *name, const char *list, unsigned node, unsigned *size) {
    const char *at = list;
    unsigned tasks, nodes, before = 0;
    bool found = false;
    do {
        if (!take_group(&at, &tasks, &nodes))
            fail("environment: %s='%s' is not a list of tasks per node", name, list);
        if (!found && node < before + nodes) {
            *size = tasks;
            found = true;
        }
        before += nodes;
    } while (*at++ == ',');
    if (at[-1] != '\0')
        fail("environment: %s='%s' is not a list of tasks per node", name, list);
    return found;
}

static bool slurm_size(unsigned *size) {
    unsigned node;
    const char *name =
        getenv("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
    const char *list = getenv(name);
    if (!list)
        return false;
    if (read_variable("SLURM_NODEID", &node))
        return tasks_of_node(name, list, node, size);
    /* Without a node number only a list that is the same for every node helps. */
    return !strchr(list, ',') && tasks_of_node(name, list, 0, size);
}

/* A batch script has Slurm's variables as if it were a task, but what it starts is started alone. */
static bool is_batch_script(void) {
    const char *kind = getenv("ENVIRONMENT");
    return kind && !strcmp(kind, "BATCH") && !getenv("SLURM_STEP_TASKS_PER_NODE");
}

struct launcher {
    const char *rank;                  /* variable with the local rank */
    const char *size[2];               /* variables with the local size */
    bool (*find_size)(unsigned *size); /* for launchers that do not state it plainly */
};

static const struct launcher launchers[] = {
    {"OMPI_COMM_WORLD_LOCAL_RANK", {"OMPI_COMM_WORLD_LOCAL_SIZE", NULL}, NULL},
    {"MV2_COMM_WORLD_LOCAL_RANK", {"MV2_COMM_WORLD_LOCAL_SIZE", NULL}, NULL},
    {"MPI_LOCALRANKID", {"MPI_LOCALNRANKS", NULL}, NULL},
    {"PMI_LOCAL_RANK", {"PMI_LOCAL_SIZE", NULL}, NULL},
    {"PALS_LOCAL_RANKID", {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}, NULL},
    {"FLUX_TASK_LOCAL_ID", {NULL, NULL}, flux_size},
    {"SLURM_LOCALID", {NULL, NULL}, slurm_size},
};

static bool find_size(const struct launcher *launcher, unsigned *size) {
    return read_variable(launcher->size[0], size) || read_variable(launcher->size[1], size) ||
           (launcher->find_size && launcher->find_size(size));
}

static struct local_rank ask(const struct launcher *launcher, unsigned rank) {
    struct local_rank local = {.rank = rank, .size = rank + 1};
    local.size_known = find_size(launcher, &local.size);
    if (rank >= local.size)
        fail("environment: %s=%u, but there are %u ranks on this node", launcher->rank, rank, local.size);
    return local;
}

/* Variables that only a launcher sets, but that say nothing about the node. */
static void refuse_global_rank_only(void) {
    static const char *const global[] = {"PMIX_RANK", "PMI_RANK"};
    unsigned size;
    if (read_variable("PMI_SIZE", &size) && size == 1)
        return;
    for (size_t i = 0; i < sizeof global / sizeof *global; i++)
        if (getenv(global[i]))
            fail("environment: a launcher set %s=%s, but no variable tells the local rank on this node",
                 global[i], getenv(global[i]));
}

struct local_rank find_local_rank(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        unsigned rank;
        bool batch_script = launchers[i].find_size == slurm_size && is_batch_script();
        if (!batch_script && read_variable(launchers[i].rank, &rank))
            return ask(&launchers[i], rank);
    }
    refuse_global_rank_only();
    return (struct local_rank){.rank = 0, .size = 1, .size_known = true};
}
