#include <stdlib.h>
#include <string.h>
int main(void) {
    char *block = malloc(4 << 20);
    memset(block, 1, 4 << 20);
    free(block);
    return 0;
}
