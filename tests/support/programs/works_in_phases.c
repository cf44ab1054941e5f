/* Works for the given hundredths of a second of CPU time before MPI_Init, after it, and after MPI_Finalize.
 */
#include <stdlib.h>
#include <time.h>
int MPI_Init(int *, char ***), MPI_Finalize(void);
static void work(const char *hundredths) {
    clock_t end = clock() + atoi(hundredths) * (CLOCKS_PER_SEC / 100);
    while (clock() < end) {
    }
}
int main(int argc, char **argv) {
    (void)argc;
    work(argv[1]);
    MPI_Init(NULL, NULL);
    work(argv[2]);
    MPI_Finalize();
    work(argv[3]);
    return 0;
}
