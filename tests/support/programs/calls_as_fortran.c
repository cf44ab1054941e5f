#include "fortran_names.h"
void INIT(int *), INIT_THREAD(const int *, int *, int *), FINALIZE(int *);
int main(int argc, char **argv) {
    int wanted = 3, given = 0, error = -1;
    (void)argv;
    if (argc > 1)
        INIT_THREAD(&wanted, &given, &error);
    else
        INIT(OPTIONAL);
    FINALIZE(OPTIONAL);
    return given + error;
}
