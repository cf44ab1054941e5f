/* Without MPI: keeps a plan beside itself, is faster with one, and counts in a file of its case. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char name[4096];
    snprintf(name, sizeof name, "%s.plan", argv[0]);
    FILE *plan = fopen(name, "r"), *state = fopen("case/state", "r+");
    double least = plan ? 0.1 : 0.3;
    int steps = 0;
    while (clock() < least * CLOCKS_PER_SEC) {
    }
    if (!plan)
        plan = fopen(name, "w");
    if (fscanf(state, "%d", &steps) != 1)
        return 1;
    rewind(state);
    fprintf(state, "%d", steps + 1);
    if (fclose(plan) || fclose(state))
        return 1;
    printf("Time: %.6f s\nSteps: %d\n", least + 1e-6 * (getpid() % 1000), steps);
    return 0;
}
