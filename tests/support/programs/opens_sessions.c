#include <unistd.h>
int MPI_Session_init(void *, void *, int *), MPI_Session_finalize(int *);
int main(void) {
    int first, second;
    usleep(20000);
    if (MPI_Session_init(0, 0, &first) || MPI_Session_init(0, 0, &second) || MPI_Session_finalize(&first))
        return 1;
    usleep(20000);
    if (MPI_Session_finalize(&second))
        return 2;
    return usleep(20000);
}
