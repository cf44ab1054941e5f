/* Apart from first_touch.c, which programs without MPI use too. */
#include "fail_together.h"
#include "first_touch.h"
#include "program.h"

#include <mpi.h>

void memory_need(size_t bytes) {
    double mine = (double)bytes, together;
    MPI_Allreduce(&mine, &together, 1, MPI_DOUBLE, MPI_SUM, program_node());
    double available = (double)memory_available();
    const double gib = 1024.0 * 1024.0 * 1024.0;
    require(together <= available, "%.3g GiB needed on a node, %.3g GiB available: choose a smaller size",
            together / gib, available / gib);
}
