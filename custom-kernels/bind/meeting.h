/* Ranks of two launches that begin at the same moment. */
#ifndef PLUMB_MEETING_H
#define PLUMB_MEETING_H

/* Wait until as many ranks are here as the file at `path` says, two numbers of 32 bits: how many are
 * expected, and 0. Exits if they are not there within a minute. */
void meet(const char *path);

#endif
