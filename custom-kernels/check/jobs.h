/* Whether a job is on this node, asked of the health script for the scheduler that the class names. */
#ifndef PLUMB_CHECK_JOBS_H
#define PLUMB_CHECK_JOBS_H

#include "class.h"

enum jobs { NO_JOBS, JOBS, JOBS_UNKNOWN };

/* Ask, for at most `seconds`. `said` receives the first line of the answer, or why there is none. */
enum jobs jobs_ask(const struct class *class, const char *node, double seconds, const char **said);

#endif
