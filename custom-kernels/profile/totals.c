/* The sums: by communicator, call and power of two of the size; by peer. */
#include <string.h>
#include <sys/mman.h>

#include "profile.h"

long long peers_unknown;

struct cell (*cells)[CALLS][BINS];
struct peer *peers;
int world_size;

/* Pages are touched where something is counted only; huge pages would each be cleared whole. */
static void *room_of(size_t bytes) {
    void *room = preload_room(bytes);
    if (room != NULL)
        madvise(room, bytes, MADV_NOHUGEPAGE);
    return room;
}

bool totals_start(int ranks) {
    world_size = ranks;
    cells = room_of(COMMUNICATORS * sizeof *cells);
    peers = room_of((size_t)ranks * sizeof *peers);
    return cells != NULL && peers != NULL;
}

void received(int world, long long bytes) {
    if (world >= 0 && world < world_size) {
        peers[world].received_messages++;
        peers[world].received_bytes += (uint64_t)bytes;
    } else if (world != -1) {
        peers_unknown++;
    }
}

void totals_clear(struct cell *cell, int world) {
    memset(cell, 0, sizeof *cell);
    memset(&peers[world], 0, sizeof peers[world]);
}

static void write_cell(struct json *out, const struct cell *cell, double ns_per_tick) {
#define NANOSECONDS(ticks) ((long long)((double)(ticks) * ns_per_tick + 0.5))
    json_open(out, NULL, '{');
    json_int(out, "count", (long long)cell->count);
    json_int(out, "time_ns", NANOSECONDS(cell->time));
    json_int(out, "least_ns", NANOSECONDS(cell->least_time));
    json_int(out, "most_ns", NANOSECONDS(cell->most_time));
    json_int(out, "bytes", (long long)cell->bytes);
    json_int(out, "least_bytes", (long long)cell->least_bytes);
    json_int(out, "most_bytes", (long long)cell->most_bytes);
    json_int(out, "completed", (long long)cell->completed);
    json_int(out, "completion_ns", NANOSECONDS(cell->completion));
    json_int(out, "waited_ns", NANOSECONDS(cell->waited));
    json_close(out, '}');
}

static bool is_empty(const struct cell *row) {
    for (int bin = 0; bin < BINS; bin++)
        if (row[bin].count > 0)
            return false;
    return true;
}

static const char *const roles[] = {
    [PLAIN] = "other",           [SENDS] = "send",          [RECEIVES] = "receive", [EXCHANGES] = "exchange",
    [COLLECTIVE] = "collective", [NEIGHBOUR] = "neighbour", [PUTS] = "put",         [GETS] = "get",
    [STARTS] = "start",          [WAITS] = "wait",
};

static void write_calls(struct json *out, int communicator, double ns_per_tick) {
    json_open(out, "calls", '[');
    for (int call = 0; call < CALLS; call++) {
        const struct cell *row = cells[communicator][call];
        if (is_empty(row))
            continue;
        json_newline(out);
        json_open(out, NULL, '{');
        json_text(out, "call", calls[call].name);
        json_text(out, "role", roles[calls[call].role]);
        json_bool(out, "request", calls[call].ends != RETURNS);
        json_open(out, "sizes", '[');
        for (int bin = 0; bin < BINS; bin++)
            if (row[bin].count > 0)
                write_cell(out, &row[bin], ns_per_tick);
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_peers(struct json *out) {
    json_open(out, "peers", '[');
    for (int rank = 0; rank < world_size; rank++) {
        const struct peer *peer = &peers[rank];
        if (peer->sent_messages == 0 && peer->received_messages == 0)
            continue;
        json_newline(out);
        json_open(out, NULL, '{');
        json_int(out, "rank", rank);
        json_int(out, "sent_messages", (long long)peer->sent_messages);
        json_int(out, "sent_bytes", (long long)peer->sent_bytes);
        json_int(out, "received_messages", (long long)peer->received_messages);
        json_int(out, "received_bytes", (long long)peer->received_bytes);
        json_close(out, '}');
    }
    json_close(out, ']');
}

void totals_write(struct json *out, double ns_per_tick) {
    static const char digits[] = "0123456789abcdef";
    json_open(out, "communicators", '[');
    for (int place = 0; place < COMMUNICATORS; place++) {
        const struct communicator *one = &communicators[place];
        if (!one->known && place != OTHERS)
            continue;
        char members[17] = {0};
        for (int digit = 0; digit < 16; digit++)
            members[digit] = digits[(one->members >> (60 - 4 * digit)) & 15];
        json_newline(out);
        json_open(out, NULL, '{');
        json_int(out, "id", place);
        json_int(out, "size", one->size);
        json_int(out, "rank", one->rank);
        json_text(out, "members", members);
        json_bool(out, "window", one->window);
        json_bool(out, "inter", one->inter);
        write_calls(out, place, ns_per_tick);
        json_close(out, '}');
    }
    json_close(out, ']');
    write_peers(out);
    json_open(out, "lost", '{');
    json_int(out, "communicators", communicators_lost);
    json_int(out, "members", members_lost);
    json_int(out, "peers", peers_unknown);
    json_int(out, "requests", requests_lost);
    json_close(out, '}');
}
