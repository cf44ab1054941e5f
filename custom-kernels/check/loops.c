#include "loops.h"

extern const struct loops loops_plain;
#if defined(__x86_64__)
extern const struct loops loops_avx2, loops_avx512;
#endif

const struct loops *loops_here(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return &loops_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &loops_avx2;
#endif
    return &loops_plain;
}
