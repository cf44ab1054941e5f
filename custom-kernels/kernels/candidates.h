/* Values of one setting of the MPI library, taken in turn within one process (MPI_T). */
#ifndef PLUMB_CANDIDATES_H
#define PLUMB_CANDIDATES_H

#include <mpi.h>

struct candidates;

/* `text` is NAME=VALUE,VALUE,… with whole numbers; the value that NAME has is candidate 0, before them. NULL:
 * one candidate, the library as it is. Collective; ends all ranks if the library lacks NAME or does not take
 * a value. */
struct candidates *candidates_new(const char *text);

int candidates_count(const struct candidates *candidates);

int candidates_value(const struct candidates *candidates, int which);

/* NAME; "" without one. */
const char *candidates_setting(const struct candidates *candidates);

/* The library has the value from now on. Returns the communicator of all ranks that was made under it: a
 * library looks at the setting then, or at each call. */
MPI_Comm candidates_take(const struct candidates *candidates, int which);

/* The library has its first value again. Collective. */
void candidates_free(struct candidates *candidates);

#endif
