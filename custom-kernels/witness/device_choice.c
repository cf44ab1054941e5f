/* Which GPUs was this process told to use? */
#include "device_variables.h"
#include "witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 256 };
static char at_start[DEVICE_VARIABLES][LONGEST];

static void copy(char *to, const char *name) {
    const char *value = getenv(name);
    if (value != NULL)
        snprintf(to, LONGEST, "%s", value);
}

void devices_start(void) {
    for (int i = 0; device_variables[i] != NULL; i++)
        copy(at_start[i], device_variables[i]);
}

/* A value that the program gave itself counts; MPI libraries that clear the environment change nothing. */
void devices_write(struct json *out) {
    json_open(out, "device_variables", '{');
    for (int i = 0; device_variables[i] != NULL; i++) {
        copy(at_start[i], device_variables[i]);
        if (at_start[i][0] != '\0')
            json_text(out, device_variables[i], at_start[i]);
    }
    json_close(out, '}');
}
