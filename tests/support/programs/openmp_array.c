#include <omp.h>
#include <stdio.h>
#include <string.h>
static char array[16 << 20];
int main(void) {
    int threads = 0;
#pragma omp parallel
    {
#pragma omp for
        for (long i = 0; i < (long)sizeof array; i++)
            array[i] = 1;
#pragma omp atomic
        threads++;
    }
    printf("%d threads %d\n", threads, array[5]);
    return 0;
}
