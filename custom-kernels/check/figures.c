#include "figures.h"

#include <string.h>

const struct figure_facts figure_facts[FIGURES] = {
    [MEMORY] = {"memory", "GB/s", true, ""},
    [MEMORY_NUMA] = {"memory.numa", "GB/s", true, "NUMA node"},
    [CACHE] = {"cache", "GB/s", true, ""},
    [CACHE_CORE] = {"cache.core", "GB/s", true, "CPU"},
    [FMA] = {"fma", "GFlop/s", true, ""},
    [FMA_CORE] = {"fma.core", "GFlop/s", true, "CPU"},
    [CLOCK] = {"clock", "GHz", true, ""},
    [CLOCK_CORE] = {"clock.core", "GHz", true, "CPU"},
    [HANDOVER] = {"handover", "ns", false, ""},
    [HANDOVER_PAIR] = {"handover.pair", "ns", false, "CPUs"},
    [NEIGHBOUR] = {"neighbour", "GB/s", true, ""},
    [NEIGHBOUR_PAIR] = {"neighbour.pair", "GB/s", true, "CPUs"},
    [GPU_IN] = {"gpu.in", "GB/s", true, "GPU"},
    [GPU_OUT] = {"gpu.out", "GB/s", true, "GPU"},
    [GPU_MEMORY] = {"gpu.memory", "GB/s", true, "GPU"},
};

enum figure figure_named(const char *name) {
    enum figure figure = 0;
    while (figure < FIGURES && strcmp(figure_facts[figure].name, name) != 0)
        figure++;
    return figure;
}
