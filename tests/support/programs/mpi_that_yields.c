/* An MPI library that yields while it starts and ends. */
#include <sched.h>
int MPI_Init_thread(int *count, char ***words, int required, int *provided) {
    (void)count, (void)words;
    sched_yield();
    *provided = required;
    return 0;
}
int MPI_Finalize(void) {
    for (int i = 0; i < 5; i++)
        sched_yield();
    return 0;
}
