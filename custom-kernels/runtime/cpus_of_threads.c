/* Apart from hardware.c, which programs without OpenMP use too. */
#include "hardware.h"

bool cpus_of_threads(int threads, struct cpus *cpus) {
    bool known = true;
    CPU_ZERO_S(sizeof *cpus, cpus->set);
#pragma omp parallel num_threads(threads) reduction(&& : known)
    {
        struct cpus own;
        known = cpus_allowed(&own);
#pragma omp critical
        CPU_OR_S(sizeof own, cpus->set, cpus->set, own.set);
    }
    return known;
}
