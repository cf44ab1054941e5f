#include "facts.h"

#include "fail.h"
#include "procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VALUE = 256, MOST_ENTRIES = 4096 };

static void add(struct facts *facts, const char *name, const char *value) {
    if (!value || !*value || facts->count == MOST_FACTS)
        return;
    facts->list[facts->count++] = (struct named){text("%s", name), text("%s", value)};
}

/* The first line of a file; NULL if it cannot be read or is empty. In a buffer that the next call overwrites.
 */
static const char *line_of(const char *path) {
    static char line[VALUE];
    if (!read_text(path, line, sizeof line))
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return *line ? line : NULL;
}

static const char *line_in(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%.300s/%.100s", folder, name);
    return line_of(path);
}

/* The word in brackets of "always [madvise] never". */
static const char *chosen(const char *path) {
    static char word[VALUE];
    const char *line = line_of(path), *begin = line ? strchr(line, '[') : NULL;
    return begin && sscanf(begin, "[%255[^]]", word) == 1 ? word : NULL;
}

/* Entries of a folder, in the order of their names. */
struct entries {
    char *name[MOST_ENTRIES];
    size_t count;
};

static void keep(const char *name, void *context) {
    struct entries *entries = context;
    if (entries->count < MOST_ENTRIES)
        entries->name[entries->count++] = text("%s", name);
}

/* Shorter names first, so that node2 comes before node10. */
static int by_name(const void *left, const void *right) {
    const char *a = *(char *const *)left, *b = *(char *const *)right;
    size_t first = strlen(a), second = strlen(b);
    return first != second ? (first > second) - (first < second) : strcmp(a, b);
}

static const struct entries *entries_of(const char *path) {
    struct entries *entries = allocate(1, sizeof *entries);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        entries_visit(folder, keep, entries);
        close(folder);
    }
    qsort(entries->name, entries->count, sizeof *entries->name, by_name);
    return entries;
}

/* The value behind "KEY : " of /proc/cpuinfo. */
static const char *cpuinfo(const char *key) {
    static struct line_reader reader;
    static char value[VALUE];
    bool found = false;
    if (!lines_open(&reader, "/proc/cpuinfo"))
        return NULL;
    for (char *line; !found && (line = lines_next(&reader));) {
        size_t length = strlen(key);
        const char *colon = strchr(line, ':');
        if (colon && !strncmp(line, key, length) &&
            strspn(line + length, " \t") == (size_t)(colon - line) - length)
            found = sscanf(colon, ": %255[^\n]", value) == 1;
    }
    lines_close(&reader);
    return found ? value : NULL;
}

static void read_cpus(struct facts *facts) {
    static const char folder[] = "/sys/devices/system/cpu";
    const struct entries *cpus = entries_of(folder);
    char governor[VALUE] = "";
    add(facts, "cpu.model", cpuinfo("model name"));
    add(facts, "cpu.microcode", cpuinfo("microcode"));
    add(facts, "cpu.online", line_in(folder, "online"));
    add(facts, "cpu.smt", line_in(folder, "smt/active"));
    add(facts, "cpu.no_turbo", line_in(folder, "intel_pstate/no_turbo"));
    add(facts, "cpu.boost", line_in(folder, "cpufreq/boost"));
    for (size_t index = 0; index < cpus->count; index++) {
        char name[VALUE];
        snprintf(name, sizeof name, "%.100s/cpufreq/scaling_governor", cpus->name[index]);
        const char *found = strncmp(name, "cpu", 3) ? NULL : line_in(folder, name);
        if (found && !*governor)
            snprintf(governor, sizeof governor, "%s", found);
        else if (found && strcmp(found, governor) != 0)
            snprintf(governor, sizeof governor, "not the same on all CPUs");
    }
    add(facts, "cpu.governor", governor);
}

static void read_memory(struct facts *facts) {
    static const char folder[] = "/sys/devices/system/node";
    const struct entries *nodes = entries_of(folder);
    size_t kib = number_behind("/proc/meminfo", "MemTotal:");
    if (kib != SIZE_MAX)
        add(facts, "memory.mib", text("%zu", kib >> 10));
    kib = number_behind("/proc/meminfo", "MemAvailable:");
    if (kib != SIZE_MAX)
        add(facts, "memory.available.mib", text("%zu", kib >> 10));
    bool several = false;
    for (size_t index = 0; index < nodes->count; index++)
        several |= !strcmp(nodes->name[index], "node1");
    for (size_t index = 0; several && index < nodes->count; index++) {
        char path[VALUE];
        snprintf(path, sizeof path, "%s/%.100s/meminfo", folder, nodes->name[index]);
        kib = number_behind(path, "MemTotal:");
        if (!strncmp(nodes->name[index], "node", 4) && kib != SIZE_MAX)
            add(facts, text("memory.%s.mib", nodes->name[index]), text("%zu", kib >> 10));
    }
    add(facts, "memory.thp", chosen("/sys/kernel/mm/transparent_hugepage/enabled"));
    add(facts, "memory.numa_balancing", line_of("/proc/sys/kernel/numa_balancing"));
}

static unsigned word(const unsigned char *at) {
    return at[0] | (unsigned)at[1] << 8;
}

/* A structure has a header (type, length), its fields, and texts that end with two zero bytes. */
static const unsigned char *behind(const unsigned char *at, const unsigned char *end) {
    at += at[1];
    while (at + 1 < end && (at[0] || at[1]))
        at++;
    return at + 2;
}

const char *dimms_of(const unsigned char *table, size_t bytes) {
    const unsigned char *end = table + bytes;
    enum { MEMORY_DEVICE = 17, SIZE = 0x0c, LARGE = 0x1c, SPEED = 0x20, NEEDED = 0x22 };
    unsigned long long least_mib = 0, all_mib = 0;
    unsigned count = 0, speed = 0;
    bool same = true;
    for (const unsigned char *at = table; at + 4 <= end && at[1] >= 4 && at + at[1] <= end;
         at = behind(at, end)) {
        if (at[0] != MEMORY_DEVICE || at[1] < NEEDED || word(at + SIZE) == 0 || word(at + SIZE) == 0xffff)
            continue;
        unsigned size = word(at + SIZE);
        unsigned long long mib = size == 0x7fff
                                     ? word(at + LARGE) | (unsigned long long)word(at + LARGE + 2) << 16
                                 : (size & 0x8000u) ? (size & 0x7fffu) >> 10
                                                    : size;
        same = same && (count == 0 || (mib == least_mib && speed == word(at + SPEED)));
        least_mib = count == 0 || mib < least_mib ? mib : least_mib;
        speed = count == 0 || word(at + SPEED) < speed ? word(at + SPEED) : speed;
        all_mib += mib;
        count++;
    }
    if (count == 0)
        return NULL;
    return same ? text("%u x %llu MiB %u MT/s", count, least_mib, speed)
                : text("%u of %llu MiB together, the slowest %u MT/s", count, all_mib, speed);
}

static void read_dimms(struct facts *facts) {
    static const char path[] = "/sys/firmware/dmi/tables/DMI";
    enum { MOST = 1 << 20 };
    int file = open(path, O_RDONLY | O_CLOEXEC);
    facts->dimms_refused = file < 0 && errno == EACCES;
    if (file < 0)
        return;
    unsigned char *table = allocate(MOST, 1);
    size_t used = 0;
    for (ssize_t got; used < MOST && (got = read(file, table + used, MOST - used)) > 0;)
        used += (size_t)got;
    close(file);
    add(facts, "memory.modules", dimms_of(table, used));
    free(table);
}

/* Fabric adapters, and network cards with a device below them. */
static void read_links(struct facts *facts) {
    const struct entries *cards = entries_of("/sys/class/infiniband");
    for (size_t card = 0; card < cards->count; card++) {
        char folder[VALUE];
        snprintf(folder, sizeof folder, "/sys/class/infiniband/%.100s/ports", cards->name[card]);
        const struct entries *ports = entries_of(folder);
        for (size_t port = 0; port < ports->count; port++) {
            char place[VALUE + 128], state[VALUE];
            snprintf(place, sizeof place, "%s/%.100s", folder, ports->name[port]);
            const char *line = line_in(place, "state");
            snprintf(state, sizeof state, "%s", line ? line : "?");
            line = line_in(place, "rate");
            add(facts, text("link.%s.%s", cards->name[card], ports->name[port]),
                text("%s, %s", line ? line : "?", state));
        }
    }
    cards = entries_of("/sys/class/net");
    for (size_t card = 0; card < cards->count; card++) {
        char folder[VALUE], device[VALUE + 16];
        snprintf(folder, sizeof folder, "/sys/class/net/%.100s", cards->name[card]);
        snprintf(device, sizeof device, "%s/device", folder);
        const char *speed = access(device, F_OK) == 0 ? line_in(folder, "speed") : NULL;
        if (speed && atoi(speed) > 0)
            add(facts, text("link.%s", cards->name[card]), text("%s Mbit/s", speed));
    }
}

/* Network cards and GPUs with the width of their link. Its present speed is that of an idle device. */
static void read_devices(struct facts *facts) {
    static const char root[] = "/sys/bus/pci/devices";
    const struct entries *devices = entries_of(root);
    for (size_t index = 0; index < devices->count; index++) {
        char folder[VALUE], kind[VALUE], vendor[VALUE];
        snprintf(folder, sizeof folder, "%s/%.100s", root, devices->name[index]);
        const char *line = line_in(folder, "class");
        snprintf(kind, sizeof kind, "%s", line ? line : "");
        if (strncmp(kind, "0x02", 4) != 0 && strncmp(kind, "0x03", 4) != 0)
            continue;
        line = line_in(folder, "vendor");
        snprintf(vendor, sizeof vendor, "%s", line ? line : "?");
        line = line_in(folder, "device");
        const char *model = text("%s:%s", vendor, line ? line : "?");
        line = line_in(folder, "current_link_width");
        add(facts, text("device.%s", devices->name[index]),
            line && atoi(line) > 0 && atoi(line) < 255 ? text("%s x%s", model, line) : model);
    }
}

/* What MPI libraries copy between processes with. */
static void read_transports(struct facts *facts) {
    const char *scope = line_of("/proc/sys/kernel/yama/ptrace_scope");
    add(facts, "transport.ptrace_scope", scope);
    add(facts, "transport.xpmem", access("/dev/xpmem", F_OK) == 0 ? "yes" : "no");
    add(facts, "transport.knem", access("/dev/knem", F_OK) == 0 ? "yes" : "no");
}

void facts_read(struct facts *facts, const char *vectors) {
    *facts = (struct facts){.count = 0};
    read_cpus(facts);
    add(facts, "cpu.vectors", vectors);
    read_memory(facts);
    read_dimms(facts);
    read_links(facts);
    read_devices(facts);
    read_transports(facts);
}

const char *facts_value(const struct facts *facts, const char *name) {
    for (size_t index = 0; index < facts->count; index++)
        if (!strcmp(facts->list[index].name, name))
            return facts->list[index].value;
    return NULL;
}

bool fact_equal(const char *name, const char *expected, const char *found) {
    size_t length = strlen(name);
    bool is_size = !strncmp(name, "memory.", 7) && length > 4 && !strcmp(name + length - 4, ".mib");
    double wanted = atof(expected);
    return is_size ? fabs(atof(found) - wanted) <= 0.01 * wanted : !strcmp(expected, found);
}
