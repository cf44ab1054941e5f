/* Communicators and windows seen so far. One that was freed leaves its place to the next of the same members.
 */
#include <string.h>

#include "profile.h"

enum { MEMBERS = 1 << 22 };

struct communicator communicators[COMMUNICATORS];
long long communicators_lost, members_lost;
signed char communicators_recent[RECENT];

static int *members; /* of all communicators, one after the other, with room to ask for as many again */
static size_t used;
static uint64_t world_group;

bool communicators_start(void) {
    members = preload_room(2 * MEMBERS * sizeof *members);
    if (members == NULL)
        return false;
    communicators[NOWHERE] = (struct communicator){.known = true};
    communicators[OTHERS] = (struct communicator){.rank = -1};
    return true;
}

uint64_t communicators_world(const void *session) {
    any_function set = session == NULL ? NULL : next_function("PMPI_Group_from_session_pset");
    uint64_t handle = 0;
    world_group = 0;
    if (session == NULL)
        ask(asked.Comm_group, abi.world, WORD(&world_group), 0, 0, 0);
    else if (set != NULL)
        ask(set, *(const uint64_t *)memcpy(&handle, session, abi.handle), WORD("mpi://WORLD"),
            WORD(&world_group), 0, 0);
    return world_group;
}

void communicators_leave(void) {
    if (world_group != 0)
        ask(asked.Group_free, WORD(&world_group), 0, 0, 0, 0);
    world_group = 0;
}

static void read_members(struct communicator *one, uint64_t group) {
    size_t size = (size_t)one->size;
    if (used + size > MEMBERS) {
        members_lost++;
        return;
    }
    int *world = members + used, *own = world + size;
    for (int rank = 0; rank < one->size; rank++)
        own[rank] = rank;
    ask(asked.Group_translate_ranks, group, size, WORD(own), world_group, WORD(world));
    one->members = 1469598103934665603u; /* FNV-1a */
    for (size_t rank = 0; rank < size; rank++)
        one->members = (one->members ^ (uint32_t)world[rank]) * 1099511628211u;
    one->world = world;
}

static int neighbours_of(uint64_t comm, int rank) {
    int kind = 0, count = 0, in = 0, weighted = 0;
    ask(asked.Topo_test, comm, WORD(&kind), 0, 0, 0);
    if (kind == abi.cart && ask(asked.Cartdim_get, comm, WORD(&count), 0, 0, 0) == 0)
        return 2 * count;
    if (kind == abi.graph)
        ask(asked.Graph_neighbors_count, comm, (uint64_t)rank, WORD(&count), 0, 0);
    else if (kind == abi.dist)
        ask(asked.Dist_graph_neighbors_count, comm, WORD(&in), WORD(&count), WORD(&weighted), 0);
    return count;
}

static struct communicator look_at(uint64_t key, bool window) {
    struct communicator one = {.key = key, .known = true, .live = true, .window = window};
    int inter = 0;
    uint64_t group = 0;
    if (window) {
        ask(asked.Win_get_group, key, WORD(&group), 0, 0, 0);
    } else {
        ask(asked.Comm_test_inter, key, WORD(&inter), 0, 0, 0);
        ask(asked.Comm_rank, key, WORD(&one.rank), 0, 0, 0);
        ask(inter ? asked.Comm_remote_group : asked.Comm_group, key, WORD(&group), 0, 0, 0);
        one.neighbours = inter ? 0 : neighbours_of(key, one.rank);
    }
    one.inter = inter != 0;
    ask(asked.Group_size, group, WORD(&one.size), 0, 0, 0);
    read_members(&one, group);
    ask(asked.Group_free, WORD(&group), 0, 0, 0, 0);
    return one;
}

static int add(uint64_t key, bool window) {
    struct communicator one = look_at(key, window);
    int free_place = OTHERS;
    for (int place = OTHERS - 1; place > NOWHERE; place--) {
        const struct communicator *old = &communicators[place];
        bool same = old->known && !old->live && old->window == window && old->size == one.size &&
                    old->members == one.members && old->neighbours == one.neighbours;
        if (same || !old->known)
            free_place = place;
        if (same)
            break;
    }
    if (free_place == OTHERS) {
        communicators_lost++;
        return OTHERS;
    }
    if (communicators[free_place].known)
        one.world = communicators[free_place].world;
    else if (one.world != NULL)
        used += (size_t)one.size;
    communicators[free_place] = one;
    return free_place;
}

int communicator_searched(uint64_t key, bool window) {
    signed char *guess = communicator_guess(key);
    for (int place = 1; place < OTHERS; place++) {
        const struct communicator *one = &communicators[place];
        if (one->live && one->key == key && one->window == window)
            return *guess = (signed char)place;
    }
    return *guess = (signed char)add(key, window);
}

void communicator_forget(uint64_t key, bool window) {
    for (int place = 1; place < OTHERS; place++)
        if (communicators[place].key == key && communicators[place].window == window)
            communicators[place].live = false;
}
