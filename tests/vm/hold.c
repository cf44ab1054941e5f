/* Touches MEGABYTES of memory, each thread its part, and ends. With READY and GO it makes the file READY and
 * waits for the file GO in between, so that a test can meddle with it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: hold MEGABYTES [READY GO]\n");
        return 2;
    }
    long bytes = atol(argv[1]) << 20;
    char *block = malloc((size_t)bytes);
    if (block == NULL) {
        perror("hold");
        return 1;
    }
#pragma omp parallel for schedule(static)
    for (long i = 0; i < bytes; i += 4096)
        block[i] = 1;
    if (argc == 4) {
        FILE *ready = fopen(argv[2], "w");
        if (ready == NULL || fclose(ready) != 0) {
            perror(argv[2]);
            return 1;
        }
        while (access(argv[3], F_OK) != 0)
            usleep(10000);
        /* threads that were moved must have run since, or the kernel still names their old CPU */
#pragma omp parallel for schedule(static)
        for (long i = 0; i < bytes; i += 4096)
            block[i]++;
    }
    long sum = 0;
    for (long i = 0; i < bytes; i += 4096)
        sum += block[i];
    printf("%ld\n", sum);
    return sum == 0;
}
