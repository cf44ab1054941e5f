#include "blas.h"

#include <string.h>
#include <strings.h>

/* Not every library has these: NULL then. */
void BLAS(openblas_set_num_threads)(int threads) __attribute__((weak));
char *BLAS(openblas_get_corename)(void) __attribute__((weak));
char *BLAS(openblas_get_config)(void) __attribute__((weak));
void MKL_Set_Num_Threads(int threads) __attribute__((weak));
void MKL_Get_Version_String(char *text, int length) __attribute__((weak));
void bli_thread_set_num_threads(ptrdiff_t threads) __attribute__((weak));

/* OpenBLAS's names of x86 processors, and the doubles in a vector of their DGEMM. */
static const struct {
    const char *name;
    int lanes;
} kernels[] = {
    {"Prescott", 2},  {"Core2", 2},      {"Penryn", 2},      {"Dunnington", 2},     {"Nehalem", 2},
    {"Atom", 2},      {"Barcelona", 2},  {"Bobcat", 2},      {"Opteron", 2},        {"Sandybridge", 4},
    {"Bulldozer", 4}, {"Piledriver", 4}, {"Steamroller", 4}, {"Excavator", 4},      {"Haswell", 4},
    {"Zen", 4},       {"SkylakeX", 8},   {"Cooperlake", 8},  {"SapphireRapids", 8},
};

void blas_one_thread(void) {
    if (BLAS(openblas_set_num_threads))
        BLAS(openblas_set_num_threads)(1);
    if (MKL_Set_Num_Threads)
        MKL_Set_Num_Threads(1);
    if (bli_thread_set_num_threads)
        bli_thread_set_num_threads(1);
}

const char *blas_version(void) {
    static char text[200];
    if (MKL_Get_Version_String) {
        MKL_Get_Version_String(text, sizeof text - 1); /* padded with blanks */
        for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--)
            text[end - 1] = 0;
        return text;
    }
    return BLAS(openblas_get_config) ? BLAS(openblas_get_config)() : NULL;
}

const char *blas_kernels(void) {
    return BLAS(openblas_get_corename) ? BLAS(openblas_get_corename)() : NULL;
}

int blas_lanes(void) {
    const char *chosen = blas_kernels();
    for (size_t index = 0; chosen && index < sizeof kernels / sizeof *kernels; index++)
        if (!strcasecmp(chosen, kernels[index].name))
            return kernels[index].lanes;
    return 0;
}
