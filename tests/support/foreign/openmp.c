/* OpenMP without MPI. */
#include <omp.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(void) {
#pragma omp parallel
    {
        struct timespec now;
        do
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        while ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec < 0.15);
    }
    printf("Rate: %d.%d GF/s\n", omp_get_max_threads(), getpid());
    return 0;
}
