#include "overlap_transfer.h"

#include "overlap_work.h"
#include "program.h"
#include "timer.h"

#include <mpi.h>
#include <omp.h>
#include <stdatomic.h>

enum { TAG = 13, WORDS_A_PAGE = 512 };

static const uint64_t seed = 20260101;

/* Word `index` of message `number`: the first word of every page changes from message to message. */
static uint64_t word(const struct transfer *transfer, size_t index) {
    return index % WORDS_A_PAGE ? index * 2654435761u : (index << 20) + transfer->number;
}

void transfer_fill(struct transfer *transfer) {
    for (size_t index = 0; index < transfer->words; index++)
        transfer->buffer[index] = word(transfer, index);
}

static void stamp(struct transfer *transfer) {
    for (size_t index = 0; index < transfer->words; index += WORDS_A_PAGE)
        transfer->buffer[index] = word(transfer, index);
}

static bool arrived(const struct transfer *transfer, bool thoroughly) {
    for (size_t index = 0; index < transfer->words; index += thoroughly ? 1 : WORDS_A_PAGE)
        if (transfer->buffer[index] != word(transfer, index))
            return false;
    return true;
}

static void start(struct transfer *transfer, MPI_Request *request) {
    int count = (int)transfer->words;
    if (transfer->direction == ISEND)
        MPI_Isend(transfer->buffer, count, MPI_UINT64_T, 1, TAG, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(transfer->buffer, count, MPI_UINT64_T, 1, TAG, MPI_COMM_WORLD, request);
}

static void do_work(struct transfer *transfer) {
    if (work(seed, transfer->steps) != work_expected(seed, transfer->steps))
#pragma omp atomic
        transfer->wrong_works++;
}

/* The work in pieces, and a look at the message after each. */
static void do_work_with_tests(struct transfer *transfer, MPI_Request *request) {
    uint64_t state = seed;
    int complete = 0;
    for (size_t done = 0, piece; done < transfer->steps; done += piece) {
        size_t left = transfer->steps - done;
        piece = left < transfer->test_steps ? left : transfer->test_steps;
        state = work(state, piece);
        if (!complete)
            MPI_Test(request, &complete, MPI_STATUS_IGNORE);
    }
    transfer->wrong_works += state != work_expected(seed, transfer->steps);
}

/* One thread: what is between start and end is up to the library. */
static void run_alone(struct transfer *transfer, bool message, bool with_work) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (message)
        start(transfer, &request);
    if (with_work && message && transfer->method == METHOD_TEST)
        do_work_with_tests(transfer, &request);
    else if (with_work)
        do_work(transfer);
    if (message)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A second thread looks for messages all the time; there are none, but the library moves on meanwhile. */
static void run_with_progress_thread(struct transfer *transfer, bool message, bool with_work) {
    atomic_bool stop = false;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            run_alone(transfer, message, with_work);
            atomic_store(&stop, true);
        } else {
            int found;
            while (message && !atomic_load(&stop))
                MPI_Iprobe(MPI_ANY_SOURCE, TAG + 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        }
    }
}

/* Task mode: thread 0 communicates, all others work. */
static void run_as_tasks(struct transfer *transfer, bool message, bool with_work) {
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0)
            run_alone(transfer, message, false);
        else if (with_work)
            do_work(transfer);
    }
}

static double run(struct transfer *transfer, bool message, bool with_work) {
    uint64_t begin = ticks();
    if (transfer->method == METHOD_THREAD)
        run_with_progress_thread(transfer, message, with_work);
    else if (transfer->method == METHOD_TASK)
        run_as_tasks(transfer, message, with_work);
    else
        run_alone(transfer, message, with_work);
    return ticks_ns(ticks() - begin) / 1e3;
}

/* The other end, which does nothing else. */
static double answer(struct transfer *transfer) {
    int count = (int)transfer->words;
    if (transfer->direction == ISEND)
        MPI_Recv(transfer->buffer, count, MPI_UINT64_T, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(transfer->buffer, count, MPI_UINT64_T, 0, TAG, MPI_COMM_WORLD);
    return 0.0;
}

double transfer_message(struct transfer *transfer, bool with_work, bool thoroughly) {
    int sender = transfer->direction == ISEND ? 0 : 1;
    transfer->number++;
    if (program_rank() == sender)
        stamp(transfer);
    MPI_Barrier(MPI_COMM_WORLD);
    double time = program_rank() == 0 ? run(transfer, true, with_work) : answer(transfer);
    if (program_rank() != sender)
        transfer->wrong_messages += !arrived(transfer, thoroughly);
    return time;
}

double transfer_work_only(struct transfer *transfer) {
    return run(transfer, false, true);
}
