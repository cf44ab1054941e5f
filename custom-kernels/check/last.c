#include "last.h"

#include "child.h"
#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Stands in a kept form where the age belongs; no text of a form has control characters of its own. */
#define AGE "\x01"
#define HEAD "plumb-check 1"
/* A result may be this much younger than now: its node's clock was set back a little. One from further in the
 * future is of a clock that was wrong (at boot), so nobody knows how old it is. */
#define CLOCKS_S 60

static bool write_all(int file, const char *content) {
    for (size_t left = strlen(content); left > 0;) {
        ssize_t wrote = write(file, content, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        content += wrote;
        left -= (size_t)wrote;
    }
    return true;
}

const char *file_replace(const char *path, const char *content) {
    char *other = text("%s.%d", path, (int)getpid());
    unlink(other); /* what a process of the same number left when it was killed */
    int file = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    bool done = file >= 0 && write_all(file, content) && fsync(file) == 0;
    int fault = errno;
    if (file >= 0 && close(file) != 0)
        done = false;
    if (done && rename(other, path) == 0)
        return NULL;
    fault = done ? errno : fault;
    if (file >= 0)
        unlink(other);
    return text("%s cannot be written: %s", path, strerror(fault));
}

const char *last_keep(const char *folder, const struct outcome *outcome) {
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return text("%s cannot be made: %s", folder, strerror(errno));
    char *content = text("%s %.3f %d\n", HEAD, outcome->time, (int)outcome->verdict.state);
    for (enum form form = 0; form < FORMS; form++) {
        char *one = outcome_text(outcome, form, AGE);
        content = text("%s%zu\n%s", content, strlen(one), one);
    }
    return file_replace(text("%s/last", folder), content);
}

static char *read_whole(const char *path) {
    char *content = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    if (getdelim(&content, &size, '\0', file) < 0)
        content = NULL;
    fclose(file);
    return content;
}

/* The part of a form; NULL if the file is not whole. */
static char *part_of(char *content, enum form wanted) {
    char *at = strchr(content, '\n');
    for (enum form form = 0; at && form < FORMS; form++) {
        char *end;
        size_t length = strtoul(at + 1, &end, 10);
        if (*end != '\n' || strlen(end + 1) < length)
            return NULL;
        if (form == wanted) {
            end[1 + length] = '\0';
            return end + 1;
        }
        at = end + length;
        if (*at != '\n' && length > 0)
            return NULL;
    }
    return NULL;
}

char *last_text(const char *folder, enum form form, int *status) {
    double when;
    int state;
    char *content = read_whole(text("%s/last", folder));
    if (!content || sscanf(content, HEAD " %lf %d", &when, &state) != 2 || state < FINE || state > FOUND)
        return NULL;
    double age = clock_s(CLOCK_REALTIME) - when;
    char *part = part_of(content, form), *found = text("%s", "");
    if (!part || !(age >= -CLOCKS_S))
        return NULL;
    for (char *piece; (piece = strsep(&part, AGE));)
        found = part ? text("%s%s%.0f", found, piece, age > 0 ? age : 0) : text("%s%s", found, piece);
    *status = outcome_status((enum state)state, form);
    return found;
}

bool last_lock(const char *folder) {
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        fail("%s cannot be made: %s: give --state", folder, strerror(errno));
    int file = open(text("%s/lock", folder), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
        fail("%s/lock: %s: give another --state", folder, strerror(errno));
    return flock(file, LOCK_EX | LOCK_NB) == 0;
}
