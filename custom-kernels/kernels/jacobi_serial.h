/* The same solver without ranks, threads, halos and blocking: what all others must agree with. */
#ifndef PLUMB_JACOBI_SERIAL_H
#define PLUMB_JACOBI_SERIAL_H

#include "jacobi_field.h"

#include <stddef.h>

/* Bytes that it takes. */
size_t serial_bytes(const long points[DIMENSIONS]);

struct findings serial_solve(const long points[DIMENSIONS], bool periodic, long sweeps);

#endif
