#include "cuda_driver.h"

#include "fail.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Of cuda.h: attributes of a device, and a stream that does not wait for the others. */
enum { PROCESSORS = 16, MEMORY_CLOCK_KHZ = 36, MEMORY_BUS_BITS = 37, L2_BYTES = 38, NON_BLOCKING = 1 };

typedef struct gpu_context *gpu_context;
typedef struct gpu_module *gpu_module;

static struct {
    int (*init)(unsigned);
    int (*error_text)(int, const char **);
    int (*count)(int *);
    int (*device)(int *, int);
    int (*address)(char *, int, int);
    int (*attribute)(int *, int, int);
    int (*retain)(gpu_context *, int);
    int (*use)(gpu_context);
    int (*can_reach)(int *, int, int);
    int (*reach)(gpu_context, unsigned);
    int (*over)(gpu_pointer, gpu_context, gpu_pointer, gpu_context, size_t, gpu_stream);
    int (*take)(gpu_pointer *, size_t);
    int (*give_back)(gpu_pointer);
    int (*pin)(void *, size_t, unsigned);
    int (*unpin)(void *);
    int (*stream)(gpu_stream *, unsigned);
    int (*wait)(gpu_stream);
    int (*in)(gpu_pointer, const void *, size_t, gpu_stream);
    int (*out)(void *, gpu_pointer, size_t, gpu_stream);
    int (*load)(gpu_module *, const void *);
    int (*function)(gpu_function *, gpu_module, const char *);
    int (*start)(gpu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                 gpu_stream, void **, void **);
} driver;

/* By the number that the driver gives to a GPU. */
static struct {
    int device;
    gpu_context context;
} opened[MOST_GPUS];

/* The driver's names, whose versions are part of them. */
static const struct {
    const char *name;
    void *place;
} functions[] = {
    {"cuInit", &driver.init},
    {"cuGetErrorString", &driver.error_text},
    {"cuDeviceGetCount", &driver.count},
    {"cuDeviceGet", &driver.device},
    {"cuDeviceGetPCIBusId", &driver.address},
    {"cuDeviceGetAttribute", &driver.attribute},
    {"cuDevicePrimaryCtxRetain", &driver.retain},
    {"cuCtxSetCurrent", &driver.use},
    {"cuDeviceCanAccessPeer", &driver.can_reach},
    {"cuCtxEnablePeerAccess", &driver.reach},
    {"cuMemcpyPeerAsync", &driver.over},
    {"cuMemAlloc_v2", &driver.take},
    {"cuMemFree_v2", &driver.give_back},
    {"cuMemHostRegister_v2", &driver.pin},
    {"cuMemHostUnregister", &driver.unpin},
    {"cuStreamCreate", &driver.stream},
    {"cuStreamSynchronize", &driver.wait},
    {"cuMemcpyHtoDAsync_v2", &driver.in},
    {"cuMemcpyDtoHAsync_v2", &driver.out},
    {"cuModuleLoadData", &driver.load},
    {"cuModuleGetFunction", &driver.function},
    {"cuLaunchKernel", &driver.start},
};

static bool find_functions(char *why, size_t room) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        snprintf(why, room, "%s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found) {
            snprintf(why, room, "libcuda.so.1 has no %s", functions[i].name);
            return false;
        }
        memcpy(functions[i].place, &found, sizeof found);
    }
    return true;
}

static const char *text_of(int error) {
    const char *found = NULL;
    return driver.error_text(error, &found) == 0 && found ? found : "an error that it does not know";
}

static void must(int error, const char *what) {
    if (error)
        fail("the CUDA driver: %s: %s", what, text_of(error));
}

/* 0 if the driver does not report it. */
static double attribute(int device, int which) {
    int value = 0;
    return driver.attribute(&value, which, device) == 0 && value > 0 ? value : 0;
}

static void describe(struct gpu *gpu, int device) {
    must(driver.address(gpu->address, sizeof gpu->address, device), "PCI address");
    for (char *at = gpu->address; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    /* both edges of the clock */
    gpu->memory_mbyte_s =
        2 * attribute(device, MEMORY_CLOCK_KHZ) * attribute(device, MEMORY_BUS_BITS) / 8 * 1e-3;
    gpu->l2_bytes = (size_t)attribute(device, L2_BYTES);
    gpu->processors = (unsigned)attribute(device, PROCESSORS);
}

void gpu_open_number(int number, struct gpu *gpu) {
    must(driver.device(&opened[number].device, number), "GPU");
    must(driver.retain(&opened[number].context, opened[number].device), "context");
    describe(gpu, opened[number].device);
}

void gpu_use(int number) {
    must(driver.use(opened[number].context), "context");
}

int gpu_count(char *why, size_t room) {
    int error, count = 0;
    if (!find_functions(why, room))
        return 0;
    if ((error = driver.init(0)) || (error = driver.count(&count))) {
        snprintf(why, room, "the CUDA driver: %s", text_of(error));
        return 0;
    }
    if (count == 0)
        snprintf(why, room, "the CUDA driver shows none");
    return count < MOST_GPUS ? count : MOST_GPUS;
}

bool gpu_open(struct gpu *gpu, char *why, size_t room) {
    if (gpu_count(why, room) == 0)
        return false;
    gpu_open_number(0, gpu);
    gpu_use(0);
    return true;
}

bool gpu_open_second(struct gpu *gpu, bool *direct) {
    int count = 0, can = 0;
    must(driver.count(&count), "number of GPUs");
    if (count < 2)
        return false;
    gpu_open_number(1, gpu);
    must(driver.can_reach(&can, opened[0].device, opened[1].device), "way between GPUs");
    if (can)
        must(driver.reach(opened[1].context, 0), "way between GPUs");
    *direct = can;
    return true;
}

gpu_pointer gpu_take(size_t bytes) {
    gpu_pointer memory = 0;
    int error = driver.take(&memory, bytes);
    if (error)
        fail("the CUDA driver: %zu bytes of the GPU's memory: %s", bytes, text_of(error));
    return memory;
}

void gpu_give_back(gpu_pointer memory) {
    must(driver.give_back(memory), "giving back memory");
}

gpu_pointer gpu_take_second(size_t bytes) {
    gpu_use(1);
    gpu_pointer memory = gpu_take(bytes);
    gpu_use(0);
    return memory;
}

void gpu_give_back_second(gpu_pointer memory) {
    gpu_use(1);
    gpu_give_back(memory);
    gpu_use(0);
}

void gpu_pin(void *memory, size_t bytes) {
    must(driver.pin(memory, bytes, 0), "pinning memory");
}

void gpu_unpin(void *memory) {
    must(driver.unpin(memory), "memory that was pinned");
}

gpu_stream gpu_stream_new(void) {
    gpu_stream stream = NULL;
    must(driver.stream(&stream, NON_BLOCKING), "stream");
    return stream;
}

void gpu_wait(gpu_stream stream) {
    must(driver.wait(stream), "waiting for the GPU");
}

void gpu_copy_in(gpu_pointer to, const void *from, size_t bytes, gpu_stream stream) {
    must(driver.in(to, from, bytes, stream), "copy to the GPU");
}

void gpu_copy_out(void *to, gpu_pointer from, size_t bytes, gpu_stream stream) {
    must(driver.out(to, from, bytes, stream), "copy from the GPU");
}

void gpu_copy_over(gpu_pointer to, gpu_pointer from, size_t bytes, gpu_stream stream) {
    must(driver.over(to, opened[1].context, from, opened[0].context, bytes, stream), "copy between GPUs");
}

void gpu_copy_back(gpu_pointer to, gpu_pointer from, size_t bytes, gpu_stream stream) {
    must(driver.over(to, opened[0].context, from, opened[1].context, bytes, stream), "copy between GPUs");
}

gpu_function gpu_load(const char *ptx, const char *name) {
    gpu_module module = NULL;
    gpu_function function = NULL;
    must(driver.load(&module, ptx), "compiling PTX");
    must(driver.function(&function, module, name), name);
    return function;
}

void gpu_start(gpu_function function, unsigned blocks, unsigned threads, void **parameters,
               gpu_stream stream) {
    must(driver.start(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL),
         "start of a kernel");
}
