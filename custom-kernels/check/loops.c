#include "loops.h"

extern const struct loops loops_plain;
#if defined(__x86_64__)
#include <cpuid.h>

extern const struct loops loops_avx2, loops_avx512;

/* The registers whose state the kernel saves, as in XCR0; not __builtin_cpu_supports, which some compilers
 * cannot link. */
static unsigned saved_registers(void) {
    unsigned a, b, c, d, saved = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE) != 0)
        __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    return saved;
}
#endif

const struct loops *loops_here(void) {
#if defined(__x86_64__)
    const unsigned avx = 0x6, avx512 = 0xe6, saved = saved_registers();
    unsigned a, b, c, d, features;
    if (__get_cpuid_count(7, 0, &a, &features, &c, &d) && __get_cpuid(1, &a, &b, &c, &d) &&
        (c & bit_FMA) != 0) {
        if ((features & bit_AVX512F) != 0 && (saved & avx512) == avx512)
            return &loops_avx512;
        if ((features & bit_AVX2) != 0 && (saved & avx) == avx)
            return &loops_avx2;
    }
#endif
    return &loops_plain;
}
