#include "local_rank.h"

#include "fail.h"
#include "numbers.h"
#include "rank_variables.h"

#include <stdlib.h>
#include <string.h>

/* Variables of the local rank without a second one for the number of ranks on the node. */
#define FLUX "FLUX_TASK_LOCAL_ID"
#define SLURM "SLURM_LOCALID"

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

/* Read one "2(x3)" or "1": `tasks` on each of `nodes` nodes. */
static bool take_group(const char **at, unsigned *tasks, unsigned *nodes) {
    *nodes = 1;
    if (!take_number(at, tasks))
        return false;
    return !take_character(at, '(') ||
           (take_character(at, 'x') && take_number(at, nodes) && take_character(at, ')'));
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

/* A batch script has Slurm's variables as if it were a task, but a program that it starts directly is a
 * single process. */
static bool is_batch_script(void) {
    const char *kind = getenv("ENVIRONMENT");
    return kind && !strcmp(kind, "BATCH") && !getenv("SLURM_STEP_TASKS_PER_NODE");
}

/* The number of ranks on this node: from a row of the table with the same local rank, or from other variables
 * of Flux and Slurm. False if the launcher does not report it. */
static bool find_size(const char *local_rank, unsigned *size) {
    for (int row = 0; rank_variables[row][RANK]; row++) {
        const char *name = rank_variables[row][LOCAL_RANK];
        if (name && !strcmp(name, local_rank) && read_variable(rank_variables[row][LOCAL_SIZE], size))
            return true;
    }
    if (!strcmp(local_rank, FLUX))
        return flux_size(size);
    return !strcmp(local_rank, SLURM) && slurm_size(size);
}

static struct local_rank ask(const char *variable, unsigned rank) {
    struct local_rank local = {.rank = rank, .size = rank + 1};
    local.size_known = find_size(variable, &local.size);
    if (rank >= local.size)
        fail("environment: %s=%u, but there are %u ranks on this node", variable, rank, local.size);
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
            fail("environment: a launcher set %s=%s, but no variable reports the local rank on this node",
                 global[i], getenv(global[i]));
}

struct local_rank find_local_rank(void) {
    for (int row = 0; rank_variables[row][RANK]; row++) {
        const char *name = rank_variables[row][LOCAL_RANK];
        unsigned rank;
        bool batch_script = name && !strcmp(name, SLURM) && is_batch_script();
        if (!batch_script && read_variable(name, &rank))
            return ask(name, rank);
    }
    refuse_global_rank_only();
    return (struct local_rank){.rank = 0, .size = 1, .size_known = true};
}
