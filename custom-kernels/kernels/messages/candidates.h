/* Values of one setting of the MPI library, taken in turn within one process (MPI_T). */
#ifndef PLUMB_CANDIDATES_H
#define PLUMB_CANDIDATES_H

#include <mpi.h>

struct candidates;

/* `text` is NAME=VALUE,VALUE,… with whole numbers; the value that NAME has now is candidate 0, before them.
 * NULL: one candidate, the library as it is. Collective; ends all ranks if `text` is malformed, or if the
 * library lacks NAME or does not accept a value. Free with candidates_free. */
struct candidates *candidates_new(const char *text);

int candidates_count(const struct candidates *candidates);

int candidates_value(const struct candidates *candidates, int which);

/* NAME; "" without one. */
const char *candidates_setting(const struct candidates *candidates);

/* Set the library to the value of candidate `which`. Returns the communicator of all ranks that was made
 * under this value, because a library reads the setting either then or at each call. Ends the job if the
 * library does not accept the value. */
MPI_Comm candidates_take(const struct candidates *candidates, int which);

/* Set the library back to its first value and free everything. Collective. */
void candidates_free(struct candidates *candidates);

#endif
