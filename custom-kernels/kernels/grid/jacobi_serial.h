/* The Jacobi solver without ranks, threads, halos and blocking: the others must agree with it in every
 * bit. */
#ifndef PLUMB_JACOBI_SERIAL_H
#define PLUMB_JACOBI_SERIAL_H

#include "jacobi_field.h"

#include <stddef.h>

/* Bytes that serial_solve allocates for a grid of `points`. */
size_t serial_bytes(const long points[DIMENSIONS]);

/* Solve on the calling thread from the start values of field_make. Returns residual, error and checksum after
 * `sweeps` sweeps. */
struct findings serial_solve(const long points[DIMENSIONS], bool periodic, long sweeps);

#endif
