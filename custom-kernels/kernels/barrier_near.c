#include "barrier_near.h"

#include "fail_together.h"
#include "procfile.h"

#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MOST_CPUS = 8192, MOST_CACHES = 8 };

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
    cpu_set_t *all = CPU_ALLOC(MOST_CPUS), *own = CPU_ALLOC(MOST_CPUS);
    size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);
    if (!all || !own)
        fail("out of memory");
    CPU_ZERO_S(bytes, all);
#pragma omp parallel num_threads(threads)
    {
        group[omp_get_thread_num()] = first_sharer(sched_getcpu());
#pragma omp critical
        if (sched_getaffinity(0, bytes, own) == 0)
            CPU_OR_S(bytes, all, all, own);
    }
    int count = CPU_COUNT_S(bytes, all);
    CPU_FREE(all);
    CPU_FREE(own);
    return count;
}
