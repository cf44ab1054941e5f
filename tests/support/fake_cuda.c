/* A CUDA driver without a GPU: the host's memory and CPUs in its place. FAKE_CUDA says what goes wrong in it.
 *
 * Every call checks that the ones before it were made, as the driver does: a context, memory that was given,
 * streams of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FINE = 0,
    INVALID = 1,
    NO_MEMORY = 2,
    NO_DEVICE = 100,
    NO_CONTEXT = 201,
    BAD_PTX = 218,
    ILLEGAL = 700
};
enum { MOST = 8, FIRST = 7, SECOND = 8 };

/* `context` is 0, or the number of the device whose context is current. */
static int initialised, context, contexts[2], reached;
static struct {
    int device;
    char *at;
    size_t bytes;
} given[MOST];
static void *pinned[MOST];
static int streams[2], used;

static int goes_wrong(const char *what) {
    const char *said = getenv("FAKE_CUDA");
    return said && !strcmp(said, what);
}

static int two(void) {
    const char *said = getenv("FAKE_CUDA");
    return said && !strncmp(said, "two", 3);
}

static int is_stream(void *stream);
static int changed; /* something was copied to a GPU since the last triad */

int cuInit(unsigned flags) {
    while (goes_wrong("hangs"))
        pause();
    if (flags || goes_wrong("init"))
        return NO_DEVICE;
    initialised = 1;
    return FINE;
}

int cuGetErrorString(int error, const char **text) {
    *text = error == NO_DEVICE   ? "no CUDA-capable device is detected"
            : error == NO_MEMORY ? "out of memory"
                                 : NULL;
    return *text ? FINE : INVALID;
}

int cuDeviceGetCount(int *count) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *count = goes_wrong("none") || (visible && atoi(visible) > two()) ? 0 : two() ? 2 : 1;
    return initialised ? FINE : INVALID;
}

int cuDeviceGet(int *device, int number) {
    *device = FIRST + number;
    return number < 0 || number > two() ? INVALID : FINE;
}

int cuDeviceGetPCIBusId(char *text, int room, int device) {
    const char *address = getenv("FAKE_CUDA_ADDRESS");
    snprintf(text, (size_t)room, "%s", address ? address : "0000:C1:00.0");
    if (device == SECOND)
        snprintf(text, (size_t)room, "0000:C2:00.0");
    return device == FIRST || device == SECOND ? FINE : INVALID;
}

int cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 16 ? 4 : which == 36 ? 1000000 : which == 37 ? 4096 : which == 38 ? 4 << 20 : 0;
    return (device == FIRST || device == SECOND) && *value && !goes_wrong("silent") ? FINE : INVALID;
}

int cuDevicePrimaryCtxRetain(void **found, int device) {
    *found = &contexts[device == SECOND];
    return device == FIRST || device == SECOND ? FINE : INVALID;
}

int cuCtxSetCurrent(void *given_context) {
    context = given_context == &contexts[0] ? FIRST : given_context == &contexts[1] ? SECOND : 0;
    return context ? FINE : INVALID;
}

int cuCtxGetDevice(int *device) {
    *device = context;
    return context ? FINE : NO_CONTEXT;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
    if (!context)
        return NO_CONTEXT;
    for (int i = 0; i < MOST && !goes_wrong("memory"); i++)
        if (!given[i].at) {
            given[i].at = malloc(bytes);
            given[i].bytes = bytes;
            given[i].device = context;
            *memory = (uint64_t)(uintptr_t)given[i].at;
            return FINE;
        }
    return NO_MEMORY;
}

int cuMemFree_v2(uint64_t memory) {
    for (int i = 0; i < MOST; i++)
        if (memory && (uint64_t)(uintptr_t)given[i].at == memory && given[i].device == context) {
            free(given[i].at);
            given[i].at = NULL;
            return FINE;
        }
    return INVALID;
}

/* Does all of it lie in memory of the device that was given? */
static int is_on(int device, uint64_t memory, size_t bytes) {
    for (int i = 0; i < MOST; i++) {
        uint64_t at = (uint64_t)(uintptr_t)given[i].at;
        if (at && given[i].device == device && memory >= at && memory + bytes <= at + given[i].bytes)
            return 1;
    }
    return 0;
}

static int is_given(uint64_t memory, size_t bytes) {
    return is_on(context, memory, bytes);
}

int cuDeviceCanAccessPeer(int *can, int device, int other) {
    *can = !goes_wrong("two far");
    return device == FIRST && other == SECOND ? FINE : INVALID;
}

int cuCtxEnablePeerAccess(void *other, unsigned flags) {
    if (flags || context != FIRST || other != &contexts[1] || reached++ || goes_wrong("two far"))
        return INVALID;
    return FINE;
}

int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes,
                      void *stream) {
    int target = to_context == &contexts[1] ? SECOND : FIRST;
    int source = from_context == &contexts[1] ? SECOND : FIRST;
    if (!is_stream(stream) || target == source || !is_on(target, to, bytes) || !is_on(source, from, bytes))
        return ILLEGAL;
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    if (goes_wrong("two wrong") && target == SECOND)
        ((char *)(uintptr_t)to)[bytes - 3] ^= 1;
    return FINE;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
    (void)bytes;
    for (int i = 0; i < MOST && !flags; i++)
        if (!pinned[i]) {
            pinned[i] = memory;
            return FINE;
        }
    return INVALID;
}

int cuMemHostUnregister(void *memory) {
    for (int i = 0; i < MOST; i++)
        if (pinned[i] == memory) {
            pinned[i] = NULL;
            return FINE;
        }
    return INVALID;
}

int cuStreamCreate(void **stream, unsigned flags) {
    if (!context || flags != 1 || used == 2)
        return INVALID;
    *stream = &streams[used++];
    return FINE;
}

static int is_stream(void *stream) {
    return stream == &streams[0] || stream == &streams[1];
}

int cuStreamSynchronize(void *stream) {
    return is_stream(stream) ? FINE : INVALID;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    if (!is_stream(stream) || !is_given(to, bytes))
        return ILLEGAL;
    memcpy((void *)(uintptr_t)to, from, bytes);
    changed = 1;
    if (goes_wrong("two slow") && context == SECOND)
        usleep(100000);
    if (goes_wrong("copy") && bytes > 4)
        ((char *)(uintptr_t)to)[bytes - 3] ^= 1;
    return FINE;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    if (!is_stream(stream) || !is_given(from, bytes))
        return ILLEGAL;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return FINE;
}

int cuModuleLoadData(void **module, const void *ptx) {
    *module = &initialised;
    return !strncmp(ptx, ".version", 8) && !goes_wrong("ptx") ? FINE : BAD_PTX;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = &used;
    return module == &initialised && !strcmp(name, "triad") ? FINE : INVALID;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
    uint64_t array[3], count = *(uint64_t *)parameters[4];
    double factor = *(double *)parameters[3];
    if (function != &used || !gx || gy != 1 || gz != 1 || !bx || by != 1 || bz != 1 || shared || extra ||
        !is_stream(stream))
        return INVALID;
    for (int i = 0; i < 3; i++) {
        array[i] = *(uint64_t *)parameters[i];
        if (!is_given(array[i], 8 * count))
            return ILLEGAL;
    }
    static uint64_t last;
    if (!changed && last == array[0])
        return FINE; /* it would find the same again */
    changed = 0;
    last = array[0];
    double *a = (double *)(uintptr_t)array[0], *b = (double *)(uintptr_t)array[1],
           *c = (double *)(uintptr_t)array[2];
    for (uint64_t i = 0; i + goes_wrong("triad") < count; i++)
        a[i] = b[i] + factor * c[i];
    return FINE;
}
