#include <errno.h>
#include <sched.h>
#include <stdlib.h>
int MPI_Init_thread(int *, char ***, int, int *);
int MPI_Finalize(void);
int main(int argc, char **argv) {
    int level;
    sched_yield();
    if (MPI_Init_thread(&argc, &argv, 3, &level) != 0 || level != 3)
        return 1;
    for (int i = 0; i < atoi(argv[1]); i++)
        if (sched_yield() != 0)
            return 2;
    return MPI_Finalize();
}
