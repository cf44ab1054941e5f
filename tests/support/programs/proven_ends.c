/* Ways to end, after a quarter of a second of work or without any. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1 && argv[1][0] == 'f')
        return fork() == 0 ? 0 : 3;
    if (argc > 1 && argv[1][0] != 'w')
        return atoi(argv[1]);
    for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;)
        ;
    if (argc > 1)
        return 0;
#ifndef WELL
    raise(SIGSEGV);
#endif
    return 0;
}
