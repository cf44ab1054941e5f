#include "barrier_near.h"

#include "hardware.h"
#include "procfile.h"

#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MOST_CACHES = 8 };

static bool read_number(int cpu, int cache, const char *name, int *value) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, cache, name);
    size_t number = number_behind(path, "");
    *value = (int)number;
    return number != SIZE_MAX;
}

static int first_sharer(int cpu) {
    int outermost = 0, first = 0;
    for (int cache = 0, level, sharer; cache < MOST_CACHES; cache++)
        if (read_number(cpu, cache, "level", &level) && level > outermost &&
            read_number(cpu, cache, "shared_cpu_list", &sharer)) {
            outermost = level;
            first = sharer;
        }
    return first;
}

int near_groups(int threads, int *group) {
    struct cpus all;
#pragma omp parallel num_threads(threads)
    group[omp_get_thread_num()] = first_sharer(sched_getcpu());
    cpus_of_threads(threads, &all);
    return cpus_count(&all);
}
