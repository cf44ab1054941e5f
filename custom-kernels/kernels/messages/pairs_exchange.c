/* The ping-pong of one pair. */
#include "fail_together.h"
#include "pairs.h"
#include "program.h"
#include "samples.h"
#include "timer.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

enum { TAG = 11, AGREEMENT, LEAST_TRIPS = 2 };
/* Time of a batch of as many round trips as take long enough. */
static const double batch_ns = 1e6;

/* Byte `index` of what `from` sends `to`. */
static char pattern(int from, int to, size_t index) {
    return (char)((unsigned)from * 31u + (unsigned)to * 17u + (unsigned)index * 7u + (unsigned)(index >> 12));
}

static void fill(char *buffer, size_t bytes, int from, int to) {
    for (size_t index = 0; index < bytes; index++)
        buffer[index] = pattern(from, to, index);
}

/* Fill a buffer so that no byte of it is the expected one. */
static void poison(char *buffer, size_t bytes, int from, int to) {
    for (size_t index = 0; index < bytes; index++)
        buffer[index] = (char)~pattern(from, to, index);
}

static bool arrived(const char *buffer, size_t bytes, int from, int to) {
    for (size_t index = 0; index < bytes; index++)
        if (buffer[index] != pattern(from, to, index))
            return false;
    return true;
}

static void serve(const struct exchange *exchange, int partner, int bytes, long repetitions) {
    for (long repetition = 0; repetition < repetitions; repetition++) {
        MPI_Send(exchange->outgoing, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        MPI_Recv(exchange->incoming, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void send_back(const struct exchange *exchange, int partner, int bytes, long repetitions) {
    for (long repetition = 0; repetition < repetitions; repetition++) {
        MPI_Recv(exchange->incoming, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(exchange->outgoing, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
    }
}

static void play(const struct exchange *exchange, int partner, int bytes, long repetitions) {
    (program_rank() < partner ? serve : send_back)(exchange, partner, bytes, repetitions);
}

/* Whole round trips until both ranks see the same time again. */
static struct warm_up get_steady(const struct exchange *exchange, int partner, int bytes) {
    struct warm_up warm_up = warm_up_new(exchange->warm_up_s);
    while (!warm_up.over) {
        warm_up_begin(&warm_up);
        play(exchange, partner, bytes, warm_up.calls);
        struct batch own = warm_up_taken(&warm_up), other;
        MPI_Sendrecv(&own, 2, MPI_DOUBLE, partner, AGREEMENT, &other, 2, MPI_DOUBLE, partner, AGREEMENT,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        warm_up_add(&warm_up, (struct batch){fmax(own.ns, other.ns), fmax(own.faults, other.faults)});
    }
    return warm_up;
}

double ping_pong(const struct exchange *exchange, int partner, size_t bytes, long repetitions,
                 struct course *course) {
    int own = program_rank(), size = (int)bytes;
    double *times = allocate((size_t)exchange->batches, sizeof *times);
    fill(exchange->outgoing, bytes, own, partner);
    poison(exchange->incoming, bytes, partner, own);
    struct warm_up warm_up = get_steady(exchange, partner, size);
    if (own < partner)
        warm_ups_count(&course->warm_ups, &warm_up);
    if (repetitions == 0)
        repetitions = (long)fmax(LEAST_TRIPS, fmin(batch_ns, 1e9 * exchange->warm_up_s) / warm_up.call_ns);
    for (long batch = 0; batch < exchange->batches; batch++) {
        uint64_t begin = ticks();
        play(exchange, partner, size, repetitions);
        times[batch] = ticks_ns(ticks() - begin) / 1e3 / (2.0 * (double)repetitions);
    }
    course->wrong += !arrived(exchange->incoming, bytes, partner, own);
    double median = summarize(times, (size_t)exchange->batches).median;
    free(times);
    return own < partner ? median : 0.0;
}
