/* A program with two ranks whose time depends on how it was built, launched and told, for ten_differences.py.
 *
 * Half of its time is the work of `work`, which an optimizing compiler cannot make faster. The
 * rest are a loop that one can, copies by the memcpy of the C library, and large messages between both ranks.
 */
#define _POSIX_C_SOURCE 200112L
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 400
enum { COPIES = 1200, COPIED = 1 << 20, MESSAGES = 600, MESSAGE = 1 << 20, CELLS = 4096 };

static double cells[CELLS];
static char from[COPIED], to[COPIED], sent[MESSAGE], received[MESSAGE];

static bool is(const char *name, const char *value) {
    const char *found = getenv(name);
    return found && strcmp(found, value) == 0;
}

/* each step waits for the one before it */
static void work(int rounds) {
    volatile double sum = 1;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 200000; i++)
            sum = sum * 0.999999 + 1e-6;
}

static void relax(int sweeps) {
    for (int sweep = 0; sweep < sweeps; sweep++)
        for (int i = 1; i < CELLS - 1; i++)
            cells[i] = 0.25 * cells[i - 1] + 0.5 * cells[i] + 0.25 * cells[i + 1];
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        fprintf(stderr, "two ranks are needed\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rounds = ROUNDS;
    if (is("LEVEL", "9"))
        rounds += 60;
    if (is("MODE", "safe") && is("CHECKS", "all"))
        rounds += 80;
    memset(sent, 1, sizeof sent);
    memset(from, 1, sizeof from);
    cells[0] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    work(rounds);
    relax(8000);
    for (int i = 0; i < COPIES; i++) {
        from[i] = (char)i;
        memcpy(to, from, sizeof to);
    }
    for (int i = 0; i < MESSAGES; i++)
        MPI_Sendrecv(sent, MESSAGE, MPI_CHAR, !rank, 0, received, MESSAGE, MPI_CHAR, !rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    double seconds = MPI_Wtime() - begin;
    if (rank == 0)
        printf("time: %.6f s (%d %g)\n", seconds, (int)to[COPIES - 1], cells[CELLS / 2]);
    MPI_Finalize();
    return 0;
}
