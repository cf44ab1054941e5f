/* One set of loops, the kernels of the benchmarks under other names: LOOPS_SET is the name of the set. */
#define JOINED(set, name) set##_##name
#define NAMED(set, name) JOINED(set, name)
#define kernel_run NAMED(LOOPS_SET, kernel_run)
#define kernel_expect NAMED(LOOPS_SET, kernel_expect)
#define kernel_facts NAMED(LOOPS_SET, kernel_facts)
#define first_values NAMED(LOOPS_SET, first_values)
#define fma_work NAMED(LOOPS_SET, fma_work)

#include "../kernels/node/fma_peak.c"
#include "../kernels/node/membw_kernels.c"
#include "loops.h"

extern const struct loops LOOPS_SET;
const struct loops LOOPS_SET = {SIMD_NAME, SIMD_STREAMS, kernel_run, fma_work, kernel_expect, first_values};
