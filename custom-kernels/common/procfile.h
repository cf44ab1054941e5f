/* Reading /proc without stdio. */
#ifndef PLUMB_PROCFILE_H
#define PLUMB_PROCFILE_H

#include <stdbool.h>
#include <stddef.h>

/* Longer than any line of numa_maps: an escaped path (4 x 4096) and counts of 1024 nodes. */
#define LINE_BYTES 32768

struct line_reader {
    int fd;
    size_t at;
    size_t end;
    char buffer[LINE_BYTES];
};

bool lines_open(struct line_reader *reader, const char *path);
/* The next line without its newline, or NULL at the end. An overlong line comes in pieces. */
char *lines_next(struct line_reader *reader);
void lines_close(struct line_reader *reader);

/* The first `size` - 1 bytes of a file as a string; false with errno if it cannot be opened. */
bool read_text(const char *path, char *text, size_t size);

/* The decimal number behind the first `label` in the first 8191 bytes of a file; SIZE_MAX if there is
 * none. */
size_t number_behind(const char *path, const char *label);

#endif
