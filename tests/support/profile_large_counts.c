/* Calls functions for large counts that a library may lack, for the tests of profiles. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static const struct {
    const char *name;
    int large;
} calls[] = {
    /* argument `large`: more than an int holds */
    {"Gatherv", 0},
    {"Scatterv", 0},
    {"Allgatherv", 0},
    {"Alltoallv", 0},
    {"Alltoallw", 0},
    {"Reduce_scatter", 0},
    {"Neighbor_allgatherv", 0},
    {"Neighbor_alltoallv", 0},
    {"Neighbor_alltoallw", 0},
    {"Igatherv", 0},
    {"Send", 1},
    {"Sendrecv", 6},
    {"Gather", 4},
    {"Scatter", 1},
    {"Neighbor_alltoall", 4},
    {"Put", 5},
    {"Get_accumulate", 1},
    {"Get_accumulate", 4},
    {"Get_accumulate", 8},
};
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (dlsym(RTLD_DEFAULT, "PMPI_Send_c") != NULL)
        return MPI_Finalize();
    for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++) {
        char name[64];
        long a[12] = {0};
        a[calls[i].large] = 1L << 32;
        snprintf(name, sizeof name, "MPI_%s_c", calls[i].name);
        int (*call)(long, long, long, long, long, long, long, long, long, long, long, long) =
            dlsym(RTLD_DEFAULT, name);
        int fault = call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
        printf("%s %d\n", name, fault);
    }
    MPI_Finalize();
    return 0;
}
