#include "fail.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 1024 };

static const char *kernel = "kernel";

void fail_name(const char *name) {
    kernel = name;
}

static void print(const char *line) {
    fprintf(stderr, "%s: %s\n", kernel, line);
    fflush(stderr);
}

static bool running(void) {
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    return begun && !ended;
}

static _Noreturn void leave(void) {
    if (running())
        MPI_Finalize();
    exit(EXIT_BAD_INPUT);
}

void fail_together(const char *format, ...) {
    int rank = 0;
    if (running())
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        char line[LINE];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        print(line);
    }
    leave();
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
    if (rank == 0)
        print(line);
    leave();
}

void fail_alone(const char *format, ...) {
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    print(line);
    if (running())
        MPI_Abort(MPI_COMM_WORLD, EXIT_BAD_INPUT);
    exit(EXIT_BAD_INPUT);
}

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        fail_alone("out of memory");
    return memory;
}
