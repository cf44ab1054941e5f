/* The ways by which this process could reach other ranks when it called MPI_Finalize, or at its end if it
 * never does: memory shared with others, TCP connections, device files; how often it copied from or to the
 * memory of another process; and, where PLUMB_WITNESS_PAGES is set, how much of its memory was in huge pages
 * then. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "procfile.h"
#include "witness.h"

#define MOST_CONNECTIONS 1024 /* those beyond are counted only */
#define MOST_DEVICES 32
#define ADDRESS_BYTES 64 /* "[IPv6]:port" */

static struct {
    bool noted;
    long long shm; /* bytes, as the other two: in memory, by System V, in files */
    long long sysv;
    long long file;
    long long present; /* KiB of memory; 0 where nobody asks, or the kernel does not tell */
    long long huge;    /* KiB of that in huge pages */
    char files[256];   /* the first file */
    size_t connections;
    size_t devices;
    char local[MOST_CONNECTIONS][ADDRESS_BYTES];
    char peer[MOST_CONNECTIONS][ADDRESS_BYTES];
    long long sent[MOST_CONNECTIONS]; /* bytes; -1: the kernel does not tell */
    char device[MOST_DEVICES][ADDRESS_BYTES];
} seen;
static atomic_llong copies;
static atomic_llong refused;

void transports_copied(ssize_t bytes) {
    if (bytes > 0)
        atomic_fetch_add_explicit(&copies, 1, memory_order_relaxed);
    else if (bytes < 0 && errno == EPERM)
        atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
}

static bool begins(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* "7f00-7f01 rw-s 00000000 00:19 42  /dev/shm/name". What PMIx shares is information about the job, not
 * messages. */
static void note_mapping(const char *line) {
    char *at;
    unsigned long long from = strtoull(line, &at, 16);
    if (*at != '-')
        return;
    long long bytes = (long long)(strtoull(at + 1, &at, 16) - from);
    const char *path = strchr(line, '/');
    if (strlen(at) < 5 || at[2] != 'w' || at[4] != 's' || path == NULL || strstr(path, "/pmix-") != NULL)
        return;
    if (begins(path, "/dev/shm/") || begins(path, "/memfd:"))
        seen.shm += bytes;
    else if (begins(path, "/SYSV"))
        seen.sysv += bytes;
    else if (!begins(path, "/dev/")) {
        if (seen.file == 0)
            snprintf(seen.files, sizeof seen.files, "%s", path);
        seen.file += bytes;
    }
}

/* "AnonHugePages:      2048 kB". Rss leaves out what is in reserved huge pages. */
static void note_sum(const char *line) {
    static const char *const transparent[] = {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"};
    const char *colon = strchr(line, ':');
    long long kib = colon == NULL ? 0 : strtoll(colon + 1, NULL, 10);
    bool reserved = begins(line, "Shared_Hugetlb:") || begins(line, "Private_Hugetlb:");
    if (reserved || begins(line, "Rss:"))
        seen.present += kib;
    if (reserved)
        seen.huge += kib;
    for (size_t i = 0; i < sizeof transparent / sizeof transparent[0]; i++)
        if (begins(line, transparent[i]))
            seen.huge += kib;
}

static bool write_address(const struct sockaddr_storage *address, char *text) {
    char number[INET6_ADDRSTRLEN];
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;
    if (address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &four->sin_addr, number, sizeof number);
        snprintf(text, ADDRESS_BYTES, "%s:%u", number, ntohs(four->sin_port));
    } else if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &six->sin6_addr, number, sizeof number);
        snprintf(text, ADDRESS_BYTES, "[%s]:%u", number, ntohs(six->sin6_port));
    } else {
        return false;
    }
    return true;
}

/* Bytes that the peer has acknowledged; all, when a program has the answers to what it sent. */
static long long sent_by(int fd) {
    struct tcp_info known = {0};
    socklen_t bytes = sizeof known;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &known, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof known.tcpi_bytes_acked)
        return -1;
    return (long long)known.tcpi_bytes_acked;
}

static void note_connection(int fd) {
    struct sockaddr_storage local;
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof local;
    socklen_t peer_bytes = sizeof peer;
    char texts[2][ADDRESS_BYTES];
    if (getsockname(fd, (struct sockaddr *)&local, &bytes) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) != 0 || !write_address(&local, texts[0]) ||
        !write_address(&peer, texts[1]))
        return;
    if (seen.connections < MOST_CONNECTIONS) {
        memcpy(seen.local[seen.connections], texts[0], ADDRESS_BYTES);
        memcpy(seen.peer[seen.connections], texts[1], ADDRESS_BYTES);
        seen.sent[seen.connections] = sent_by(fd);
    }
    seen.connections++;
}

/* Terminals, /dev/null and similar devices connect no processes. */
static void note_device(const char *path) {
    static const char *const common[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                                         "/dev/tty",  "/dev/pts/", "/dev/shm/", "/dev/console"};
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (begins(path, common[i]))
            return;
    for (size_t i = 0; i < seen.devices; i++)
        if (strcmp(seen.device[i], path) == 0)
            return;
    if (seen.devices < MOST_DEVICES && strlen(path) < ADDRESS_BYTES)
        strcpy(seen.device[seen.devices++], path);
}

static void note_file(const char *name, void *folder) {
    char target[256];
    ssize_t length = readlinkat(*(const int *)folder, name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    if (begins(target, "socket:"))
        note_connection((int)strtol(name, NULL, 10));
    else if (begins(target, "/dev/"))
        note_device(target);
}

static void note_files(void) {
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    entries_visit(folder, note_file, &folder);
    close(folder);
}

/* Not the lists: clearing them would give the child its own memory for them. */
void transports_forget(void) {
    seen.noted = false;
    seen.shm = seen.sysv = seen.file = seen.present = seen.huge = 0;
    seen.files[0] = '\0';
    seen.connections = seen.devices = 0;
    atomic_store(&copies, 0);
    atomic_store(&refused, 0);
}

static bool note_lines(const char *path, void (*note)(const char *line)) {
    static struct line_reader reader;
    if (!lines_open(&reader, path))
        return false;
    const char *line;
    while ((line = lines_next(&reader)) != NULL)
        note(line);
    lines_close(&reader);
    return true;
}

void transports_note(void) {
    int saved = errno;
    if (!seen.noted && note_lines("/proc/self/maps", note_mapping)) {
        note_files();
        if (getenv("PLUMB_WITNESS_PAGES")) /* the kernel walks all pages: 15 ms for a GiB of small ones */
            note_lines("/proc/self/smaps_rollup", note_sum); /* since Linux 4.14 */
    }
    seen.noted = true;
    errno = saved;
}

/* "user:[4026531837]": processes of two such namespaces may not copy from one another. */
static void write_user_namespace(struct json *out) {
    char name[64];
    ssize_t length = readlink("/proc/self/ns/user", name, sizeof name - 1);
    name[length > 0 ? length : 0] = '\0';
    json_text(out, "user_namespace", name);
}

void transports_write(struct json *out) {
    transports_note();
    json_open(out, "transports", '{');
    json_int(out, "shm_bytes", seen.shm);
    json_int(out, "sysv_bytes", seen.sysv);
    json_int(out, "file_bytes", seen.file);
    json_text(out, "file", seen.files);
    json_int(out, "present_bytes", seen.present * 1024);
    json_int(out, "huge_bytes", seen.huge * 1024);
    json_int(out, "copies", atomic_load(&copies));
    json_int(out, "refused", atomic_load(&refused));
    write_user_namespace(out);
    json_int(out, "connections", (long long)seen.connections);
    json_open(out, "tcp", '[');
    for (size_t i = 0; i < seen.connections && i < MOST_CONNECTIONS; i++) {
        json_open(out, NULL, '[');
        json_text(out, NULL, seen.local[i]);
        json_text(out, NULL, seen.peer[i]);
        json_close(out, ']');
    }
    json_close(out, ']');
    json_open(out, "tcp_sent", '[');
    for (size_t i = 0; i < seen.connections && i < MOST_CONNECTIONS; i++)
        json_int(out, NULL, seen.sent[i]);
    json_close(out, ']');
    json_open(out, "devices", '[');
    for (size_t i = 0; i < seen.devices; i++)
        json_text(out, NULL, seen.device[i]);
    json_close(out, ']');
    json_close(out, '}');
}
