#include "fail_together.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 1024 };

static bool running(void) {
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    return begun && !ended;
}

static void abort_all(int status) {
    if (running())
        MPI_Abort(MPI_COMM_WORLD, status);
}

void fail_aborts_all_ranks(void) {
    fail_calls(abort_all);
}

void fail_together(const char *format, ...) {
    int rank = 0;
    bool inside = running();
    if (inside)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        va_list arguments;
        va_start(arguments, format);
        complain(format, arguments);
        va_end(arguments);
    }
    if (inside)
        MPI_Finalize();
    exit(EXIT_BAD_INPUT);
}

void require(bool fine, const char *format, ...) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int mine = fine ? ranks : rank, first;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == ranks)
        return;
    char line[LINE] = "";
    if (rank == first) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
    }
    MPI_Bcast(line, LINE, MPI_CHAR, first, MPI_COMM_WORLD);
    fail_together("%s", line);
}
