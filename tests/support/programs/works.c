/* Works for the given hundredths of a second of CPU time; with a second argument it is an MPI program. */
#include <stdlib.h>
#include <time.h>
#ifdef ALONE /* linked to no library */
static int MPI_Init(int *count, char ***words) {
    (void)count, (void)words;
    exit(9);
}
static int MPI_Finalize(void) {
    return 9;
}
#else
int MPI_Init(int *, char ***), MPI_Finalize(void);
#endif
int main(int argc, char **argv) {
    if (argc > 2)
        MPI_Init(NULL, NULL);
    clock_t begin = clock();
    while (clock() - begin < atoi(argv[1]) * (CLOCKS_PER_SEC / 100)) {
    }
    return argc > 2 ? MPI_Finalize() : 0;
}
