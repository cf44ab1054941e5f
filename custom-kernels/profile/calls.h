/* Every call that is wrapped, in one table: the C, large-count and Fortran entry points, the rows of the
 * profile and how each call is read come from it.
 *
 * A position counts arguments from 0, NO: there is none. A status or a request is always the last argument, a
 * buffer stands before its count. */
#ifndef PLUMB_PROFILE_CALLS_H
#define PLUMB_PROFILE_CALLS_H

enum { NO = -1 };

/* What a call does with data. */
enum role { PLAIN, SENDS, RECEIVES, EXCHANGES, COLLECTIVE, NEIGHBOUR, PUTS, GETS, STARTS, WAITS };

/* RETURNS: done when it returns. REQUESTS: done when its request is. PERSISTS: its request can be started. */
enum ends { RETURNS, REQUESTS, PERSISTS };

/* Size of what this rank gives: NONE: nothing. ONE: one element. SOME: count x type. OWN: count x type but,
 * with MPI_IN_PLACE, this rank's element of the list of counts x type. LIST: the sum of counts[] x type.
 * LISTS: the sum of counts[i] x types[i]. */
enum shape { NONE, ONE, SOME, OWN, LIST, LISTS };

/* The positions of all counts of a call, as bits; LISTED: some of its counts are in lists. */
#define AT(position) (1u << (position))
#define LISTED 0u

/* X(name, in Fortran, arguments, role, ends, shape, count, type, peer, comm or window, and where the buffer
 * is MPI_IN_PLACE, or of the other direction: count, type; COUNTED_CALLS also: all counts) */

/* A send, its non-blocking and its persistent form. */
#define SEND_FORMS(X, Name, name)                                                                            \
    X(Name, name, 6, SENDS, RETURNS, SOME, 1, 2, 3, 5, NO, NO, AT(1))                                        \
    X(I##name, i##name, 7, SENDS, REQUESTS, SOME, 1, 2, 3, 5, NO, NO, AT(1))                                 \
    X(Name##_init, name##_init, 7, SENDS, PERSISTS, SOME, 1, 2, 3, 5, NO, NO, AT(1))

/* Of `n` arguments: blocking, non-blocking (a request more) and persistent (information and a request more).
 */
#define COLLECTIVE_FORMS(X, Name, name, n, i, p, role, ...)                                                  \
    X(Name, name, n, role, RETURNS, __VA_ARGS__)                                                             \
    X(I##name, i##name, i, role, REQUESTS, __VA_ARGS__)                                                      \
    X(Name##_init, name##_init, p, role, PERSISTS, __VA_ARGS__)

#define ONE_SIDED_FORMS(X, Name, name, n, r, role, ...)                                                      \
    X(Name, name, n, role, RETURNS, __VA_ARGS__)                                                             \
    X(R##name, r##name, r, role, REQUESTS, __VA_ARGS__)

/* clang-format off */
#define COUNTED_CALLS(X) \
    SEND_FORMS(X, Send, send) \
    SEND_FORMS(X, Bsend, bsend) \
    SEND_FORMS(X, Ssend, ssend) \
    SEND_FORMS(X, Rsend, rsend) \
    X(Recv, recv, 7, RECEIVES, RETURNS, SOME, 1, 2, 3, 5, NO, NO, AT(1)) \
    X(Irecv, irecv, 7, RECEIVES, REQUESTS, SOME, 1, 2, 3, 5, NO, NO, AT(1)) \
    X(Recv_init, recv_init, 7, RECEIVES, PERSISTS, SOME, 1, 2, 3, 5, NO, NO, AT(1)) \
    X(Mrecv, mrecv, 5, RECEIVES, RETURNS, SOME, 1, 2, NO, NO, NO, NO, AT(1)) \
    X(Sendrecv, sendrecv, 12, EXCHANGES, RETURNS, SOME, 1, 2, 3, 10, 6, 7, AT(1) | AT(6)) \
    X(Sendrecv_replace, sendrecv_replace, 9, EXCHANGES, RETURNS, SOME, 1, 2, 3, 7, NO, NO, AT(1)) \
    COLLECTIVE_FORMS(X, Bcast, bcast, 5, 6, 7, COLLECTIVE, SOME, 1, 2, NO, 4, 1, 2, AT(1)) \
    COLLECTIVE_FORMS(X, Reduce, reduce, 7, 8, 9, COLLECTIVE, SOME, 2, 3, NO, 6, 2, 3, AT(2)) \
    COLLECTIVE_FORMS(X, Allreduce, allreduce, 6, 7, 8, COLLECTIVE, SOME, 2, 3, NO, 5, 2, 3, AT(2)) \
    COLLECTIVE_FORMS(X, Scan, scan, 6, 7, 8, COLLECTIVE, SOME, 2, 3, NO, 5, 2, 3, AT(2)) \
    COLLECTIVE_FORMS(X, Exscan, exscan, 6, 7, 8, COLLECTIVE, SOME, 2, 3, NO, 5, 2, 3, AT(2)) \
    COLLECTIVE_FORMS(X, Reduce_scatter, reduce_scatter, 6, 7, 8, COLLECTIVE, LIST, 2, 3, NO, 5, 2, 3, LISTED) \
    COLLECTIVE_FORMS(X, Reduce_scatter_block, reduce_scatter_block, 6, 7, 8, COLLECTIVE, SOME, 2, 3, NO, 5, 2, 3, AT(2)) \
    COLLECTIVE_FORMS(X, Gather, gather, 8, 9, 10, COLLECTIVE, SOME, 1, 2, NO, 7, 4, 5, AT(1) | AT(4)) \
    COLLECTIVE_FORMS(X, Gatherv, gatherv, 9, 10, 11, COLLECTIVE, OWN, 1, 2, NO, 8, 4, 6, LISTED) \
    COLLECTIVE_FORMS(X, Scatter, scatter, 8, 9, 10, COLLECTIVE, SOME, 4, 5, NO, 7, 1, 2, AT(1) | AT(4)) \
    COLLECTIVE_FORMS(X, Scatterv, scatterv, 9, 10, 11, COLLECTIVE, OWN, 5, 6, NO, 8, 1, 3, LISTED) \
    COLLECTIVE_FORMS(X, Allgather, allgather, 7, 8, 9, COLLECTIVE, SOME, 1, 2, NO, 6, 4, 5, AT(1) | AT(4)) \
    COLLECTIVE_FORMS(X, Allgatherv, allgatherv, 8, 9, 10, COLLECTIVE, OWN, 1, 2, NO, 7, 4, 6, LISTED) \
    COLLECTIVE_FORMS(X, Alltoall, alltoall, 7, 8, 9, COLLECTIVE, SOME, 1, 2, NO, 6, 4, 5, AT(1) | AT(4)) \
    COLLECTIVE_FORMS(X, Alltoallv, alltoallv, 9, 10, 11, COLLECTIVE, LIST, 1, 3, NO, 8, 5, 7, LISTED) \
    COLLECTIVE_FORMS(X, Alltoallw, alltoallw, 9, 10, 11, COLLECTIVE, LISTS, 1, 3, NO, 8, 5, 7, LISTED) \
    COLLECTIVE_FORMS(X, Neighbor_allgather, neighbor_allgather, 7, 8, 9, NEIGHBOUR, SOME, 1, 2, NO, 6, NO, NO, AT(1) | AT(4)) \
    COLLECTIVE_FORMS(X, Neighbor_allgatherv, neighbor_allgatherv, 8, 9, 10, NEIGHBOUR, SOME, 1, 2, NO, 7, NO, NO, LISTED) \
    COLLECTIVE_FORMS(X, Neighbor_alltoall, neighbor_alltoall, 7, 8, 9, NEIGHBOUR, SOME, 1, 2, NO, 6, NO, NO, AT(1) | AT(4)) \
    COLLECTIVE_FORMS(X, Neighbor_alltoallv, neighbor_alltoallv, 9, 10, 11, NEIGHBOUR, LIST, 1, 3, NO, 8, NO, NO, LISTED) \
    COLLECTIVE_FORMS(X, Neighbor_alltoallw, neighbor_alltoallw, 9, 10, 11, NEIGHBOUR, LISTS, 1, 3, NO, 8, NO, NO, LISTED) \
    ONE_SIDED_FORMS(X, Put, put, 8, 9, PUTS, SOME, 1, 2, 3, 7, NO, NO, AT(1) | AT(5)) \
    ONE_SIDED_FORMS(X, Get, get, 8, 9, GETS, SOME, 1, 2, 3, 7, NO, NO, AT(1) | AT(5)) \
    ONE_SIDED_FORMS(X, Accumulate, accumulate, 9, 10, PUTS, SOME, 1, 2, 3, 8, NO, NO, AT(1) | AT(5)) \
    ONE_SIDED_FORMS(X, Get_accumulate, get_accumulate, 12, 13, GETS, SOME, 4, 5, 6, 11, NO, NO, AT(1) | AT(4) | AT(8))

#define PLAIN_CALLS(X) \
    COLLECTIVE_FORMS(X, Barrier, barrier, 1, 2, 3, COLLECTIVE, NONE, NO, NO, NO, 0, NO, NO) \
    X(Fetch_and_op, fetch_and_op, 7, GETS, RETURNS, ONE, NO, 2, 3, 6, NO, NO) \
    X(Compare_and_swap, compare_and_swap, 7, GETS, RETURNS, ONE, NO, 3, 4, 6, NO, NO) \
    X(Win_create, win_create, 6, PLAIN, RETURNS, NONE, NO, NO, NO, 4, NO, NO) \
    X(Win_allocate, win_allocate, 6, PLAIN, RETURNS, NONE, NO, NO, NO, 3, NO, NO) \
    X(Win_allocate_shared, win_allocate_shared, 6, PLAIN, RETURNS, NONE, NO, NO, NO, 3, NO, NO) \
    X(Win_free, win_free, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_fence, win_fence, 2, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_lock, win_lock, 4, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_unlock, win_unlock, 2, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_lock_all, win_lock_all, 2, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_unlock_all, win_unlock_all, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_flush, win_flush, 2, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_flush_all, win_flush_all, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_post, win_post, 3, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_start, win_start, 3, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_complete, win_complete, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Win_wait, win_wait, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Probe, probe, 4, PLAIN, RETURNS, NONE, NO, NO, NO, 2, NO, NO) \
    X(Iprobe, iprobe, 5, PLAIN, RETURNS, NONE, NO, NO, NO, 2, NO, NO) \
    X(Mprobe, mprobe, 5, PLAIN, RETURNS, NONE, NO, NO, NO, 2, NO, NO) \
    X(Improbe, improbe, 6, PLAIN, RETURNS, NONE, NO, NO, NO, 2, NO, NO) \
    X(Comm_rank, comm_rank, 2, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Comm_size, comm_size, 2, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Comm_dup, comm_dup, 2, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Comm_split, comm_split, 4, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Comm_split_type, comm_split_type, 5, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Comm_create, comm_create, 3, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Comm_free, comm_free, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Comm_disconnect, comm_disconnect, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Cart_create, cart_create, 6, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Dist_graph_create_adjacent, dist_graph_create_adjacent, 10, PLAIN, RETURNS, NONE, NO, NO, NO, 0, NO, NO) \
    X(Type_free, type_free, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Request_free, request_free, 1, PLAIN, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Start, start, 1, STARTS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Startall, startall, 2, STARTS, RETURNS, NONE, 0, NO, NO, NO, NO, NO) \
    X(Wait, wait, 2, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Waitall, waitall, 3, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Waitany, waitany, 4, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Waitsome, waitsome, 5, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Test, test, 3, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Testall, testall, 4, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Testany, testany, 5, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO) \
    X(Testsome, testsome, 5, WAITS, RETURNS, NONE, NO, NO, NO, NO, NO, NO)

/* X(call, positions of: number of requests, requests, flag, number that completed, which; their status is last) */
#define WAITING_CALLS(X) \
    X(Wait, NO, 0, NO, NO, NO) \
    X(Waitall, 0, 1, NO, NO, NO) \
    X(Waitany, 0, 1, NO, NO, 2) \
    X(Waitsome, 0, 1, NO, 2, 3) \
    X(Test, NO, 0, 1, NO, NO) \
    X(Testall, 0, 1, 2, NO, NO) \
    X(Testany, 0, 1, 3, NO, 2) \
    X(Testsome, 0, 1, NO, 2, 3)
/* clang-format on */

#define ID_OF(Name, ...) CALL_##Name,
enum call_id { COUNTED_CALLS(ID_OF) PLAIN_CALLS(ID_OF) CALLS };
#undef ID_OF

struct call {
    const char *name; /* without MPI_ */
    const char *fortran;
    signed char arguments, role, ends, shape, count, type, peer, comm, count2, type2;
    unsigned short counts;
};

extern const struct call calls[CALLS];

#endif
