#include "hardware.h"

#include "fail.h"
#include "procfile.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

enum { GUESS = 32 << 20, WORD = 256 };

static bool read_word(const char *folder, const char *name, char *word) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_text(path, word, WORD);
}

/* Level and bytes of the data cache described in `folder`; false for instruction caches and what cannot be
 * read. */
static bool read_cache(const char *folder, int *level, size_t *bytes) {
    char word[WORD];
    unsigned long kib;
    if (!read_word(folder, "type", word) || !strncmp(word, "Instruction", 11))
        return false;
    if (!read_word(folder, "level", word) || sscanf(word, "%d", level) != 1)
        return false;
    if (!read_word(folder, "size", word) || sscanf(word, "%luK", &kib) != 1)
        return false;
    *bytes = kib << 10;
    return true;
}

size_t cache_bytes(int level) {
    for (int index = 0; index < 8; index++) {
        char folder[128];
        int found;
        size_t bytes;
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu0/cache/index%d", index);
        if (read_cache(folder, &found, &bytes) && found == level)
            return bytes;
    }
    return 0;
}

static int last_level(void) {
    int level = 4;
    while (level > 0 && cache_bytes(level) == 0)
        level--;
    return level;
}

size_t last_cache_bytes(void) {
    size_t bytes = cache_bytes(last_level());
    return bytes ? bytes : GUESS;
}

size_t all_last_caches_bytes(void) {
    glob_t found;
    size_t sum = 0;
    int last = last_level();
    if (glob("/sys/devices/system/cpu/cpu[0-9]*/cache/index[0-9]", 0, NULL, &found) != 0)
        return last_cache_bytes();
    for (size_t index = 0; index < found.gl_pathc; index++) {
        const char *folder = found.gl_pathv[index];
        char word[WORD];
        unsigned cpu, first;
        int level;
        size_t bytes;
        /* Each cache is counted at the first CPU that shares it. */
        if (read_cache(folder, &level, &bytes) && level == last &&
            read_word(folder, "shared_cpu_list", word) && sscanf(word, "%u", &first) == 1 &&
            sscanf(folder, "/sys/devices/system/cpu/cpu%u/", &cpu) == 1 && first == cpu)
            sum += bytes;
    }
    globfree(&found);
    return sum ? sum : last_cache_bytes();
}

bool cpus_allowed(struct cpus *cpus) {
    CPU_ZERO_S(sizeof *cpus, cpus->set);
    return sched_getaffinity(0, sizeof *cpus, cpus->set) == 0;
}

int cpus_count(const struct cpus *cpus) {
    return CPU_COUNT_S(sizeof *cpus, cpus->set);
}

bool cpu_bind(int cpu) {
    struct cpus one;
    CPU_ZERO_S(sizeof one, one.set);
    CPU_SET_S((size_t)cpu, sizeof one, one.set);
    return sched_setaffinity(0, sizeof one, one.set) == 0;
}

bool cpus_have(const struct cpus *cpus, int cpu) {
    return cpu < MOST_CPUS && CPU_ISSET_S((size_t)cpu, sizeof *cpus, cpus->set);
}

char *affinity_text(void) {
    struct cpus cpus;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        fail("out of memory");
    cpus_allowed(&cpus);
    const char *comma = "";
    for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
        if (!cpus_have(&cpus, cpu))
            continue;
        int first = cpu;
        while (cpus_have(&cpus, cpu + 1))
            cpu++;
        fprintf(out, cpu > first ? "%s%d-%d" : "%s%d", comma, first, cpu);
        comma = ",";
    }
    if (fclose(out) != 0)
        fail("out of memory");
    return text;
}
