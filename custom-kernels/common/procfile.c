#include "procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t read_some(int fd, char *buffer, size_t size) {
    ssize_t got;
    do {
        got = read(fd, buffer, size);
    } while (got < 0 && errno == EINTR);
    return got;
}

bool lines_open(struct line_reader *reader, const char *path) {
    reader->at = 0;
    reader->end = 0;
    reader->fault = 0;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC);
    return reader->fd >= 0;
}

bool lines_close(struct line_reader *reader) {
    close(reader->fd);
    if (reader->fault != 0)
        errno = reader->fault;
    return reader->fault == 0;
}

/* Moves what is left to the front and reads more behind it; false at the end of the file or after a fault. */
static bool refill(struct line_reader *reader) {
    size_t left = reader->end - reader->at;
    memmove(reader->buffer, reader->buffer + reader->at, left);
    reader->at = 0;
    reader->end = left;
    ssize_t got = read_some(reader->fd, reader->buffer + left, LINE_BYTES - 1 - left);
    if (got < 0)
        reader->fault = errno;
    if (got <= 0)
        return false;
    reader->end += (size_t)got;
    return true;
}

static char *take(struct line_reader *reader, size_t length, size_t skip) {
    char *line = reader->buffer + reader->at;
    line[length] = '\0';
    reader->at += length + skip;
    return line;
}

char *lines_next(struct line_reader *reader) {
    for (;;) {
        size_t left = reader->end - reader->at;
        char *newline = memchr(reader->buffer + reader->at, '\n', left);
        if (newline != NULL)
            return take(reader, (size_t)(newline - (reader->buffer + reader->at)), 1);
        if (left == LINE_BYTES - 1)
            return take(reader, left, 0);
        if (!refill(reader)) {
            left = reader->end - reader->at;
            return left > 0 && reader->fault == 0 ? take(reader, left, 0) : NULL;
        }
    }
}

void threads_visit(entry_visitor visit, void *context) {
    int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        entries_visit(directory, visit, context);
        close(directory);
    }
}

bool read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t used = 0;
    ssize_t got = 0;
    while (used + 1 < size && (got = read_some(fd, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    int fault = got < 0 ? errno : 0;
    text[used] = '\0';
    close(fd);
    if (fault != 0)
        errno = fault;
    return fault == 0;
}

struct folder_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static void visit_entries(char *buffer, long size, entry_visitor visit, void *context) {
    for (long at = 0; at < size;) {
        struct folder_entry *entry = (struct folder_entry *)(void *)(buffer + at);
        if (entry->name[0] != '.')
            visit(entry->name, context);
        at += entry->length;
    }
}

void entries_visit(int folder, entry_visitor visit, void *context) {
    _Alignas(uint64_t) char buffer[4096];
    long size;
    while ((size = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0)
        visit_entries(buffer, size, visit, context);
}

size_t number_behind(const char *path, const char *label) {
    char text[8192], *end;
    const char *found = read_text(path, text, sizeof text) ? strstr(text, label) : NULL;
    if (!found)
        return SIZE_MAX;
    found += strlen(label);
    size_t number = strtoul(found, &end, 10);
    return end == found ? SIZE_MAX : number;
}
