#include "quota.h"

#include "procfile.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 4096 };

/* The quota of one folder: "QUOTA PERIOD" of version 2, or two files of version 1. */
static double quota_in(const char *folder) {
    char path[PATH + 32];
    double quota, period;
    char line[64];
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_text(path, line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2)
        return quota / period;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_text(path, line, sizeof line) || sscanf(line, "%lf", &quota) != 1 || quota <= 0.0)
        return INFINITY;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    size_t microseconds = number_behind(path, "");
    return microseconds == SIZE_MAX || microseconds == 0 ? INFINITY : quota / (double)microseconds;
}

/* The least quota of `group` below `root`, and of the groups above it. */
static double least_quota(const char *root, const char *group) {
    char folder[PATH];
    double least = INFINITY;
    snprintf(folder, sizeof folder, "%s%s", root, group);
    for (char *slash = folder + strlen(folder); slash && slash >= folder + strlen(root);
         slash = strrchr(folder, '/')) {
        *slash = '\0';
        least = fmin(least, quota_in(folder));
    }
    return least;
}

/* Whether `controllers`, such as "cpu,cpuacct", has "cpu". */
static int has_cpu(const char *controllers) {
    size_t length;
    for (const char *word = controllers; *word; word += length + (word[length] == ',')) {
        length = strcspn(word, ",");
        if (length == 3 && !strncmp(word, "cpu", 3))
            return 1;
    }
    return 0;
}

double quota_cpus(void) {
    static struct line_reader reader;
    double least = INFINITY;
    if (!lines_open(&reader, "/proc/self/cgroup"))
        return least;
    for (char *line; (line = lines_next(&reader));) {
        char root[256] = "/sys/fs/cgroup";
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        if (*controllers && !has_cpu(controllers))
            continue;
        if (*controllers)
            snprintf(root, sizeof root, "/sys/fs/cgroup/%.200s", controllers);
        least = fmin(least, least_quota(root, group));
    }
    lines_close(&reader);
    return least;
}
