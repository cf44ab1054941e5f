/* Reading /proc without stdio and malloc. */
#ifndef PLUMB_PROCFILE_H
#define PLUMB_PROCFILE_H

#include <stdbool.h>
#include <stddef.h>

/* Longer than any line of numa_maps: an escaped path (4 x 4096) and counts of 1024 nodes. */
#define LINE_BYTES 32768

struct line_reader {
    int fd;
    int fault; /* errno of a read that failed, else 0 */
    size_t at;
    size_t end;
    char buffer[LINE_BYTES];
};

bool lines_open(struct line_reader *reader, const char *path);
/* The next line without its newline, or NULL at the end, and where the file cannot be read further. An
 * overlong line comes in pieces. */
char *lines_next(struct line_reader *reader);
/* False with errno if the file could not be read further: the lines are not all of it. */
bool lines_close(struct line_reader *reader);

/* Calls `visit` for each entry of the open folder, but those that begin with a dot. */
typedef void (*entry_visitor)(const char *name, void *context);
void entries_visit(int folder, entry_visitor visit, void *context);
/* Calls `visit` with the number of every thread of this process. */
void threads_visit(entry_visitor visit, void *context);

/* The first `size` - 1 bytes of a file as a string; false with errno if it cannot be opened or read. */
bool read_text(const char *path, char *text, size_t size);

/* The decimal number behind the first `label` in the first 8191 bytes of a file; SIZE_MAX if there is
 * none. */
size_t number_behind(const char *path, const char *label);

#endif
