#include "saturation_flows.h"

#include <mpi.h>

enum { MOST_FLOWS = 2 };

/* The value of a byte of a message: its sender, the tag and its place decide. */
static unsigned char expected(int sender, int tag, size_t place) {
    return (unsigned char)(31 * sender + 7 * tag + (int)(place % 251));
}

void flow_fill(struct flow *flow, int sender, size_t bytes) {
    for (size_t place = 0; place < bytes; place++)
        flow->out[place] = expected(sender, flow->tag, place);
    for (size_t place = 0; place < WINDOW * bytes; place++)
        flow->in[place] = (unsigned char)~expected(flow->partner, flow->tag, place % bytes);
}

void flow_check(struct flow *flow, size_t bytes) {
    for (int message = 0; message < WINDOW && flow->receives; message++) {
        const unsigned char *begin = flow->in + (size_t)message * bytes;
        size_t place = 0;
        while (place < bytes && begin[place] == expected(flow->partner, flow->tag, place))
            place++;
        flow->wrong += place < bytes;
    }
}

static void exchange_window(const struct flow *flows, int count, size_t bytes) {
    MPI_Request requests[MOST_FLOWS * (2 * WINDOW + 2)];
    int posted = 0;
    for (int index = 0; index < count; index++)
        for (int message = 0; message < WINDOW && flows[index].receives; message++)
            MPI_Irecv(flows[index].in + (size_t)message * bytes, (int)bytes, MPI_BYTE, flows[index].partner,
                      flows[index].tag, MPI_COMM_WORLD, &requests[posted++]);
    for (int index = 0; index < count; index++)
        for (int message = 0; message < WINDOW && flows[index].sends; message++)
            MPI_Isend(flows[index].out, (int)bytes, MPI_BYTE, flows[index].partner, flows[index].tag,
                      MPI_COMM_WORLD, &requests[posted++]);
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    posted = 0;
    for (int index = 0; index < count; index++) {
        const struct flow *flow = &flows[index];
        if (flow->sends)
            MPI_Irecv(NULL, 0, MPI_BYTE, flow->partner, flow->tag + 1, MPI_COMM_WORLD, &requests[posted++]);
        if (flow->receives)
            MPI_Isend(NULL, 0, MPI_BYTE, flow->partner, flow->tag + 1, MPI_COMM_WORLD, &requests[posted++]);
    }
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
}

void flows_exchange(struct flow *flows, int count, size_t bytes, long windows) {
    for (long window = 0; window < windows; window++)
        exchange_window(flows, count, bytes);
}
