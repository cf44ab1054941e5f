/* Which subdomain each rank gets: halo bytes between nodes (exact) and halo time, under three maps. */
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"
#include "rank_grid.h"
#include "result.h"
#include "samples.h"

#include <stdlib.h>

static long dimensions = 3, cells = 64, repetitions = 100, ranks_per_node, plan;
static bool periodic;
static struct warm_ups warm_ups;

static const struct argument arguments[] = {
    {"--dimensions", ARGUMENT_INTEGER, &dimensions, 2, 3, NULL, "of the grid of ranks"},
    {"--cells", ARGUMENT_INTEGER, &cells, 1, 16384, NULL,
     "edge of each rank's subdomain, in cells of 8 bytes"},
    {"--periodic", ARGUMENT_FLAG, &periodic, 0, 0, NULL, "opposite ends of the grid are neighbours"},
    {"--repetitions", ARGUMENT_INTEGER, &repetitions, 1, 1e6, NULL, "timed halo exchanges"},
    {"--ranks-per-node", ARGUMENT_INTEGER, &ranks_per_node, 0, 1e6, NULL,
     "count the ranks' nodes as if so many ran on each; 0: as it is"},
    {"--plan", ARGUMENT_INTEGER, &plan, 0, 1e6, NULL,
     "only count, for so many ranks, and exchange nothing; 0: run"},
    {.name = NULL},
};

static const struct program program = {
    .name = "rank_map",
    .summary = "halo traffic between nodes and halo time of a stencil code, by rank-to-subdomain map",
    .method =
        "Ranks form a grid (MPI_Dims_create); each sends one face of cells^(d-1) doubles to every neighbour. "
        "Maps:\n"
        "'row-major' takes ranks in order; 'cart' asks MPI_Cart_create with reorder; 'node-aware' deals "
        "positions to\n"
        "ranks node by node along nested blocks, a Hilbert curve or rows, whichever crosses fewest nodes.\n"
        "Figures: bytes that one exchange sends between nodes (counted, exact), the busiest node's share, "
        "and the\n"
        "median time of an exchange (slowest rank), warmed up until it stays the same. After RRZE's stencil "
        "mapping experiment, 2010:\n"
        "'MPI may not do the best it could when mapping your ranks to your subdomains'.",
    .arguments = arguments,
};

static size_t face_bytes(void) {
    size_t face = sizeof(double);
    for (long dimension = 1; dimension < dimensions; dimension++)
        face *= (size_t)cells;
    return face;
}

static struct grid make_grid(int ranks) {
    struct grid grid = {.dimensions = (int)dimensions, .count = ranks, .periodic = periodic};
    MPI_Dims_create(ranks, grid.dimensions, grid.extent);
    return grid;
}

/* Collective: the position that MPI_Cart_create gives to every rank. */
static void map_cart(const struct grid *grid, int *position_of) {
    int periods[MOST_DIMENSIONS] = {periodic, periodic, periodic}, own, coordinates[MOST_DIMENSIONS];
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_WORLD, grid->dimensions, grid->extent, periods, 1, &cart);
    MPI_Comm_rank(cart, &own);
    MPI_Cart_coords(cart, own, grid->dimensions, coordinates);
    own = grid_position(grid, coordinates);
    MPI_Allgather(&own, 1, MPI_INT, position_of, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Comm_free(&cart);
}

/* A row of the table; returns how many things were wrong. */
static long try_map(struct result *result, const struct grid *grid, const struct nodes *nodes,
                    const char *name, const int *position_of) {
    struct traffic traffic = count_traffic(grid, nodes, position_of, face_bytes());
    struct row *row = result_row(result);
    row_text(row, "map", name);
    row_integer(row, "ranks", grid->count);
    row_integer(row, "nodes", nodes->count);
    row_figure(row, "between_nodes", "bytes", LOWER_IS_BETTER, traffic.total, 1);
    row_figure(row, "busiest_node", "bytes", LOWER_IS_BETTER, traffic.busiest_node, 1);
    if (plan)
        return 0;
    double *times = allocate((size_t)repetitions, sizeof *times);
    long wrong = time_exchange(grid, position_of, face_bytes(), repetitions, times, &warm_ups);
    row_figure(row, "time", "us", LOWER_IS_BETTER, summarize(times, (size_t)repetitions).median, repetitions);
    free(times);
    return wrong;
}

/* Positions that no rank or more than one rank has. */
static long not_once(const int *position_of, int count) {
    int *seen = allocate((size_t)count, sizeof *seen);
    long wrong = 0;
    for (int rank = 0; rank < count; rank++)
        if (position_of[rank] < 0 || position_of[rank] >= count || seen[position_of[rank]]++)
            wrong++;
    free(seen);
    return wrong;
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    int ranks = plan ? (int)plan : program_ranks();
    if (plan && ranks_per_node == 0)
        fail_together("--plan needs --ranks-per-node: there are no nodes to look at");
    if (!plan)
        memory_need(4 * MOST_DIMENSIONS * face_bytes());
    if (face_bytes() > 1u << 30)
        fail_together("--cells: a face of %zu bytes is larger than one message of 1 GiB", face_bytes());
    struct grid grid = make_grid(ranks);
    struct nodes nodes = nodes_find(ranks, ranks_per_node);
    struct result *result = result_new();
    int *position_of = allocate((size_t)ranks, sizeof *position_of);
    for (int rank = 0; rank < ranks; rank++)
        position_of[rank] = rank;
    long wrong = try_map(result, &grid, &nodes, "row-major", position_of);
    if (!plan) {
        map_cart(&grid, position_of);
        wrong += not_once(position_of, ranks) + try_map(result, &grid, &nodes, "cart", position_of);
    }
    const char *order = map_node_aware(&grid, &nodes, face_bytes(), position_of);
    wrong += not_once(position_of, ranks) + try_map(result, &grid, &nodes, "node-aware", position_of);
    free(position_of);
    result_note(result, "grid of %d x %d x %d ranks, faces of %zu bytes; node-aware: %s", grid.extent[0],
                grid.extent[1], dimensions == 3 ? grid.extent[2] : 1, face_bytes(), order);
    result_model(result, "the traffic between nodes is exact by counting; the time has no model: link rates "
                         "are not known here");
    warm_ups_remark(result, &warm_ups);
    result_check(result, wrong == 0, "each position has one rank, each face came from its neighbour",
                 (double)wrong, 0);
    nodes_free(&nodes);
    return result_finish(result);
}
