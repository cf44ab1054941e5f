#include "threaded_messages.h"

#include "program.h"
#include "timer.h"

#include <omp.h>
#include <stdint.h>

/* Word `index` of the whole that rank `from` sends in exchange `number`: exact in a double. */
static double word(int from, long number, size_t index) {
    return (double)index + 4e9 * (double)from + 8e9 * (double)number;
}

static void fill(struct exchange *exchange) {
    size_t all = exchange->words * (size_t)exchange->messages;
    for (size_t index = 0; index < all; index++) {
        exchange->outgoing[index] = word(program_rank(), exchange->number, index);
        exchange->incoming[index] = -1.0;
    }
}

static void check(struct exchange *exchange) {
    for (int message = 0; message < exchange->messages; message++) {
        size_t first = exchange->words * (size_t)message, index = first;
        while (index < first + exchange->words &&
               exchange->incoming[index] == word(1 - program_rank(), exchange->number, index))
            index++;
        exchange->wrong += index < first + exchange->words;
    }
}

/* Message `message` there and back; its number is the tag. */
static void ping_pong(struct exchange *exchange, int message) {
    double *out = exchange->outgoing + exchange->words * (size_t)message;
    double *in = exchange->incoming + exchange->words * (size_t)message;
    int count = (int)exchange->words;
    uint64_t begin = ticks();
    if (program_rank() == 0) {
        MPI_Send(out, count, MPI_DOUBLE, 1, message, MPI_COMM_WORLD);
        MPI_Recv(in, count, MPI_DOUBLE, 1, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, count, MPI_DOUBLE, 0, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, count, MPI_DOUBLE, 0, message, MPI_COMM_WORLD);
    }
    exchange->times[message] = ticks_ns(ticks() - begin) / 1e3;
}

static uint64_t serial(struct exchange *exchange) {
    uint64_t begin = ticks();
    for (int message = 0; message < exchange->messages; message++)
        ping_pong(exchange, message);
    return ticks() - begin;
}

/* Thread 0 sends inside the region, the others wait at its end. */
static uint64_t one_thread(struct exchange *exchange) {
    uint64_t took = 0;
#pragma omp parallel num_threads(exchange->threads)
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            took = serial(exchange);
    }
    return took;
}

/* All threads send, one after the other in the order of the messages. */
static uint64_t all_ordered(struct exchange *exchange) {
    uint64_t begin = 0, end = 0;
#pragma omp parallel num_threads(exchange->threads)
    {
#pragma omp barrier
#pragma omp master
        begin = ticks();
#pragma omp for ordered schedule(static, 1)
        for (int message = 0; message < exchange->messages; message++) {
#pragma omp ordered
            ping_pong(exchange, message);
        }
#pragma omp master
        end = ticks();
    }
    return end - begin;
}

static uint64_t all_concurrent(struct exchange *exchange) {
    uint64_t begin = 0, end = 0;
#pragma omp parallel num_threads(exchange->threads)
    {
#pragma omp barrier
#pragma omp master
        begin = ticks();
#pragma omp for schedule(static, 1)
        for (int message = 0; message < exchange->messages; message++)
            ping_pong(exchange, message);
#pragma omp master
        end = ticks();
    }
    return end - begin;
}

#if MPI_VERSION >= 4
bool partitioned_possible(void) {
    int major, minor; /* of the library, which need not be the one that this was compiled with */
    MPI_Get_version(&major, &minor);
    return major >= 4;
}

void exchange_begin(struct exchange *exchange) {
    if (exchange->mode != MODE_PARTITIONED)
        return;
    MPI_Count count = (MPI_Count)exchange->words;
    int partner = 1 - program_rank();
    MPI_Psend_init(exchange->outgoing, exchange->messages, count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &exchange->requests[0]);
    MPI_Precv_init(exchange->incoming, exchange->messages, count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &exchange->requests[1]);
}

void exchange_end(struct exchange *exchange) {
    if (exchange->mode != MODE_PARTITIONED)
        return;
    MPI_Request_free(&exchange->requests[0]);
    MPI_Request_free(&exchange->requests[1]);
}

static void send_partitions(struct exchange *exchange) {
    MPI_Start(&exchange->requests[0]);
#pragma omp parallel for num_threads(exchange->threads) schedule(static, 1)
    for (int message = 0; message < exchange->messages; message++)
        MPI_Pready(message, exchange->requests[0]);
    MPI_Wait(&exchange->requests[0], MPI_STATUS_IGNORE);
}

/* One message whose parts the threads declare ready, each its own. */
static uint64_t partitioned(struct exchange *exchange) {
    MPI_Start(&exchange->requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin = ticks();
    if (program_rank() == 0)
        send_partitions(exchange);
    MPI_Wait(&exchange->requests[1], MPI_STATUS_IGNORE);
    if (program_rank() == 1)
        send_partitions(exchange);
    return ticks() - begin;
}
#else
bool partitioned_possible(void) {
    return false;
}

void exchange_begin(struct exchange *exchange) {
    (void)exchange;
}

void exchange_end(struct exchange *exchange) {
    (void)exchange;
}

/* Never called: partitioned_possible() says no. */
static uint64_t partitioned(struct exchange *exchange) {
    (void)exchange;
    return 0;
}
#endif

double exchange_once(struct exchange *exchange) {
    static uint64_t (*const run[MODES])(struct exchange *) = {serial, one_thread, all_ordered, all_concurrent,
                                                              partitioned};
    exchange->number++;
    fill(exchange);
    MPI_Barrier(MPI_COMM_WORLD);
    double time = ticks_ns(run[exchange->mode](exchange)) / 1e3;
    check(exchange);
    return time;
}

double broadcast_once(int threads, int *value) {
    uint64_t took = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (threads == 0) {
        uint64_t begin = ticks();
        MPI_Bcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return ticks_ns(ticks() - begin) / 1e3;
    }
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() == 0) {
        uint64_t begin = ticks();
        MPI_Bcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD);
        took = ticks() - begin;
    }
    return ticks_ns(took) / 1e3;
}
