#include <sched.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[argc - 1]), &set);
    return sched_setaffinity(0, sizeof set, &set);
}
