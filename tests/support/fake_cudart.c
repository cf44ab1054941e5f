/* The part of NVIDIA's CUDA runtime that IMB-MPI1-GPU opens: the host's memory in place of a GPU's. */
#include <stdlib.h>
#include <string.h>

enum { FINE = 0, INVALID = 1, NO_MEMORY = 2, BY_ADDRESS = 4 };

int cudaMalloc(void **memory, size_t bytes) {
    *memory = malloc(bytes);
    return *memory ? FINE : NO_MEMORY;
}

int cudaMallocHost(void **memory, size_t bytes) {
    return cudaMalloc(memory, bytes);
}

int cudaMallocManaged(void **memory, size_t bytes, unsigned flags) {
    return flags == 1 ? cudaMalloc(memory, bytes) : INVALID;
}

int cudaFree(void *memory) {
    free(memory);
    return FINE;
}

int cudaFreeHost(void *memory) {
    return cudaFree(memory);
}

int cudaStreamCreate(void **stream) {
    static int only;
    *stream = &only;
    return FINE;
}

int cudaStreamSynchronize(void *stream) {
    return stream ? FINE : INVALID;
}

int cudaStreamDestroy(void *stream) {
    return cudaStreamSynchronize(stream);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
    memcpy(to, from, bytes);
    return kind == BY_ADDRESS && stream ? FINE : INVALID;
}

int cudaGetDeviceCount(int *count) {
    *count = 1;
    return FINE;
}

int cudaGetDevice(int *device) {
    *device = 0;
    return FINE;
}

int cudaSetDevice(int device) {
    return device ? INVALID : FINE;
}
