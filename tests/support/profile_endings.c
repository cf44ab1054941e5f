/* Programs that end in the way of their first word, for the tests of profiles. */
#include <glob.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int kept(const char *pattern) { /* profiles that match */
    glob_t found = {0};
    int count = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return count;
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double end = MPI_Wtime() + 60; /* or, without a pattern, 2 s from now */
    for (int go = !strcmp(argv[1], "SIGKILL"); go; MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD))
        go = MPI_Wtime() < end && (argc < 3 ? MPI_Wtime() < end - 58 : kept(argv[2]) < 2);
    if (!strcmp(argv[1], "exit") && rank == 0)
        exit(0); /* the launcher ends the other one, by any signal */
    if (!strcmp(argv[1], "SIGTERM") && rank == 0)
        raise(SIGTERM);
    if (!strcmp(argv[1], "MPI_Abort") && rank == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(argv[1], "SIGKILL") && rank == 1)
        raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "MPI_Finalize"))
        sleep(30);
    MPI_Finalize();
    return 0;
}
