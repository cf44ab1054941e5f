/* The GPUs that this process was told to use, and the one that it computed on. */
#include "device_variables.h"
#include "witness.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 256, ADDRESS = 20 };
static char at_start[DEVICE_VARIABLES][LONGEST];
static char used[ADDRESS];

static void copy(char *to, const char *name) {
    const char *value = getenv(name);
    if (value != NULL)
        snprintf(to, LONGEST, "%s", value);
}

void devices_start(void) {
    for (int i = 0; device_variables[i] != NULL; i++)
        copy(at_start[i], device_variables[i]);
}

/* Only a driver that the program loaded is asked; a thread without a context gets an error from it. */
void devices_note(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL)
        return;
    int (*current)(int *) = (int (*)(int *))as_function(dlsym(driver, "cuCtxGetDevice"));
    int (*address)(char *, int, int) =
        (int (*)(char *, int, int))as_function(dlsym(driver, "cuDeviceGetPCIBusId"));
    int device;
    if (current == NULL || address == NULL || current(&device) != 0 || address(used, ADDRESS, device) != 0)
        used[0] = '\0';
    for (char *at = used; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    dlclose(driver);
}

/* The values at the end, which the program may have set itself; for variables that an MPI library removed,
 * those at the start. */
void devices_write(struct json *out) {
    json_open(out, "device_variables", '{');
    for (int i = 0; device_variables[i] != NULL; i++) {
        copy(at_start[i], device_variables[i]);
        if (at_start[i][0] != '\0')
            json_text(out, device_variables[i], at_start[i]);
    }
    json_close(out, '}');
    if (used[0] != '\0')
        json_text(out, "gpu_address", used);
}
