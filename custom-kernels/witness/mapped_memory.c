/* Pages per NUMA node of the large anonymous mappings that are present now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procfile.h"
#include "witness.h"

/* thread-self, not self: after the main thread has ended, /proc/self is a zombie without memory. Overridden
 * by tests that show the library another machine's memory. */
#ifndef WITNESS_NUMA_MAPS
#define WITNESS_NUMA_MAPS "/proc/thread-self/numa_maps"
#endif
#ifndef WITNESS_MAPS
#define WITNESS_MAPS "/proc/thread-self/maps"
#endif
#define WITNESS_THP "/sys/kernel/mm/transparent_hugepage/"

/* Pages asked for in each mapping when numa_maps is missing. */
#define FALLBACK_SAMPLES 4096

static long totals[WITNESS_MAX_NODES];
static long mapping_pages[WITNESS_MAX_NODES];
static struct line_reader reader;

struct numa_line {
    bool file;        /* backed by a file */
    bool shared_anon; /* a file by name only: MAP_SHARED | MAP_ANONYMOUS */
    long anon;
    long present;
    size_t kernel_page;
    size_t nodes;
    struct {
        int node;
        long pages;
    } node[WITNESS_MAX_NODES];
};

static struct numa_line line_facts; /* 24 KiB: not on a stack */

static bool starts(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "N3=1024" */
static void parse_node(struct numa_line *line, const char *word) {
    char *equals;
    long node = strtol(word + 1, &equals, 10);
    if (equals == word + 1 || *equals != '=' || node < 0 || node >= WITNESS_MAX_NODES ||
        line->nodes == WITNESS_MAX_NODES) {
        return;
    }
    long pages = strtol(equals + 1, NULL, 10);
    line->node[line->nodes].node = (int)node;
    line->node[line->nodes].pages = pages;
    line->nodes++;
    line->present += pages;
}

static void parse_word(struct numa_line *line, const char *word) {
    if (starts(word, "file=")) {
        line->file = true;
        line->shared_anon =
            starts(word + 5, "/dev/zero\\040(deleted)") || starts(word + 5, "/anon_hugepage\\040(deleted)");
    } else if (starts(word, "anon=")) {
        line->anon = strtol(word + 5, NULL, 10);
    } else if (starts(word, "kernelpagesize_kB=")) {
        line->kernel_page = strtoul(word + 18, NULL, 10) * 1024;
    } else if (word[0] == 'N') {
        parse_node(line, word);
    }
}

/* A private mapping of a file holds both pages of the file and, where written to, anonymous ones; the counts
 * per node do not tell them apart, so such a line counts only if all of it is anonymous. */
static bool is_anonymous(const struct numa_line *line) {
    return !line->file || line->shared_anon || line->anon == line->present;
}

static void count_line(const struct numa_line *line) {
    size_t factor = line->kernel_page > page_bytes() ? line->kernel_page / page_bytes() : 1;
    size_t bytes = (size_t)line->present * factor * page_bytes();
    if (bytes < WITNESS_THRESHOLD_BYTES || !is_anonymous(line))
        return;
    for (size_t i = 0; i < line->nodes; i++)
        totals[line->node[i].node] += line->node[i].pages * (long)factor;
}

/* "7f0c40000000 default anon=512 dirty=512 N0=512 kernelpagesize_kB=4" */
static void parse_line(char *text) {
    line_facts.file = false;
    line_facts.shared_anon = false;
    line_facts.anon = 0;
    line_facts.present = 0;
    line_facts.kernel_page = 0;
    line_facts.nodes = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        parse_word(&line_facts, word);
    count_line(&line_facts);
}

static bool count_numa_maps(void) {
    if (!lines_open(&reader, WITNESS_NUMA_MAPS))
        return false;
    for (char *line = lines_next(&reader); line != NULL; line = lines_next(&reader))
        parse_line(line);
    return lines_close(&reader);
}

/* Is "START-END PERM OFFSET DEVICE INODE   PATH" readable anonymous memory? */
static bool maps_anonymous(const char *permissions) {
    if (permissions[0] != ' ' || permissions[1] != 'r')
        return false;
    const char *at = permissions + 1;
    for (int word = 0; word < 3 && at != NULL; word++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    if (at == NULL)
        return false;
    char *path;
    unsigned long inode = strtoul(at, &path, 10);
    path += strspn(path, " ");
    bool kernel = starts(path, "[v"); /* [vvar], [vdso], [vsyscall] */
    return (inode == 0 && !kernel) || starts(path, "/dev/zero (deleted)");
}

static void add_to_mapping(int node, long pages) {
    mapping_pages[node] += pages;
}

static bool count_mapping(const char *line) {
    char *at;
    uintptr_t start = strtoul(line, &at, 16);
    uintptr_t end = *at == '-' ? strtoul(at + 1, &at, 16) : start;
    if (end - start < WITNESS_THRESHOLD_BYTES || !maps_anonymous(at))
        return true;
    memset(mapping_pages, 0, sizeof mapping_pages);
    long pages = pages_sample(start, end - start, FALLBACK_SAMPLES, add_to_mapping);
    if (pages < 0)
        return false;
    bool large = (size_t)pages * page_bytes() >= WITNESS_THRESHOLD_BYTES;
    for (int node = 0; node < WITNESS_MAX_NODES && large; node++)
        totals[node] += mapping_pages[node];
    return true;
}

/* Without numa_maps every mapping is asked for by move_pages. Returns 0 or the errno of the first fault. */
static int count_by_asking(void) {
    if (!lines_open(&reader, WITNESS_MAPS))
        return errno;
    int fault = 0;
    memset(totals, 0, sizeof totals); /* numa_maps may have failed half-way */
    for (char *line = lines_next(&reader); line != NULL && fault == 0; line = lines_next(&reader))
        if (!count_mapping(line))
            fault = errno;
    if (!lines_close(&reader) && fault == 0)
        fault = errno;
    return fault;
}

/* The unit in which the kernel allocates memory: a huge page where transparent huge pages are on. */
static long grain_bytes(void) {
    char text[128];
    if (!read_text(WITNESS_THP "enabled", text, sizeof text) || strstr(text, "[never]") != NULL)
        return (long)page_bytes();
    bool known = read_text(WITNESS_THP "hpage_pmd_size", text, sizeof text);
    long bytes = known ? strtol(text, NULL, 10) : 0;
    return bytes > 0 ? bytes : (long)page_bytes();
}

static void write_unavailable(struct json *out, int numa_maps_fault, int asking_fault) {
    char reason[256];
    const char *unknown = "NUMA nodes of the memory are unknown";
    if (asking_fault != 0) {
        snprintf(reason, sizeof reason, "%s: numa_maps: %s, move_pages: %s", unknown,
                 strerror(numa_maps_fault), strerror(asking_fault));
    } else {
        snprintf(reason, sizeof reason, "%s: move_pages of freed blocks: %s", unknown, freed_unavailable());
    }
    json_text(out, "unavailable", reason);
}

static void write_nodes(struct json *out, bool known) {
    json_open(out, "nodes", '{');
    for (int node = 0; node < WITNESS_MAX_NODES; node++)
        if (known && totals[node] > 0)
            json_numbered(out, (unsigned)node, totals[node]);
    json_close(out, '}');
}

void memory_write(struct json *out) {
    memset(totals, 0, sizeof totals);
    int asking_fault = 0;
    int numa_maps_fault = 0;
    const char *source = "numa_maps";
    if (!count_numa_maps()) {
        numa_maps_fault = errno;
        source = "move_pages";
        asking_fault = count_by_asking();
    }
    json_open(out, "memory", '{');
    json_int(out, "page_bytes", (long long)page_bytes());
    json_int(out, "grain_bytes", grain_bytes());
    json_int(out, "threshold_bytes", (long long)WITNESS_THRESHOLD_BYTES);
    json_text(out, "source", source);
    write_nodes(out, asking_fault == 0);
    freed_write(out);
    if (asking_fault != 0 || freed_unavailable() != NULL)
        write_unavailable(out, numa_maps_fault, asking_fault);
    json_close(out, '}');
}
