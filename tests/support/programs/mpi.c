/* An MPI library that can be asked, and that looks at every CPU while it is initialised. */
#include <sched.h>
static int initialised;
int MPI_Init(int *argc, char ***argv) {
    cpu_set_t before, one;
    (void)argc;
    (void)argv;
    sched_getaffinity(0, sizeof before, &before);
    for (int cpu = 0; cpu < 64; cpu++) {
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    sched_setaffinity(0, sizeof before, &before);
    initialised = 1;
    return 0;
}
int PMPI_Initialized(int *flag) {
    *flag = initialised;
    return 0;
}
int MPI_Finalize(void) {
    return 0;
}
int PMPI_Init(int *argc, char ***argv) __attribute__((alias("MPI_Init")));
int PMPI_Finalize(void) __attribute__((alias("MPI_Finalize")));
