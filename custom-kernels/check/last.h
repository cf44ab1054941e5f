/* The last result of this node: kept in all forms, so that it can be shown at once. */
#ifndef PLUMB_CHECK_LAST_H
#define PLUMB_CHECK_LAST_H

#include "outcome.h"

/* Keep an outcome in `folder`, which is made if it is missing. Returns NULL, or why it could not be kept. */
const char *last_keep(const char *folder, const struct outcome *outcome);

/* Replace `path` by `content` in one step. Returns NULL, or why that failed. */
const char *file_replace(const char *path, const char *content);

/* The last result in a form, with its age, and its exit status; NULL if there is none, or one from the
 * future. */
char *last_text(const char *folder, enum form form, int *status);

/* Hold the lock of `folder` until this process ends. False if another process holds it. */
bool last_lock(const char *folder);

#endif
