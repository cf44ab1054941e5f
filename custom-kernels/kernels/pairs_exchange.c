/* The ping-pong of one pair. */
#include "fail_together.h"
#include "pairs.h"
#include "program.h"
#include "samples.h"
#include "timer.h"

#include <mpi.h>
#include <stdlib.h>

enum { TAG = 11, MOST_WARM_UP = 20 };

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

double ping_pong(const struct exchange *exchange, int partner, size_t bytes, long repetitions, long *wrong) {
    int own = program_rank(), size = (int)bytes;
    void (*play)(const struct exchange *, int, int, long) = own < partner ? serve : send_back;
    double *times = allocate((size_t)exchange->batches, sizeof *times);
    fill(exchange->outgoing, bytes, own, partner);
    poison(exchange->incoming, bytes, partner, own);
    play(exchange, partner, size, repetitions < MOST_WARM_UP ? repetitions : MOST_WARM_UP);
    for (long batch = 0; batch < exchange->batches; batch++) {
        uint64_t begin = ticks();
        play(exchange, partner, size, repetitions);
        times[batch] = ticks_ns(ticks() - begin) / 1e3 / (2.0 * (double)repetitions);
    }
    *wrong += !arrived(exchange->incoming, bytes, partner, own);
    double median = summarize(times, (size_t)exchange->batches).median;
    free(times);
    return own < partner ? median : 0.0;
}
