/* The part of the CUDA driver that kernels call, opened when they run: building needs no toolkit. */
#ifndef PLUMB_KERNEL_CUDA_DRIVER_H
#define PLUMB_KERNEL_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A GPU that this process computes on. */
struct gpu {
    char address[20];      /* PCI address from the driver, in small letters, such as 0000:03:00.0 */
    double memory_mbyte_s; /* peak of its memory, by clock and width of the bus; 0: unknown */
    size_t l2_bytes;       /* 0: unknown */
    unsigned processors;
};

typedef uint64_t gpu_pointer;
typedef struct gpu_stream *gpu_stream;
typedef struct gpu_function *gpu_function;

enum { MOST_GPUS = 64 };

/* How many GPUs the driver lets this process see, MOST_GPUS at most; 0 with the reason in `why` (of `room`
 * bytes) if there is none. */
int gpu_count(char *why, size_t room);

/* Open a GPU by the driver's number of it, after gpu_count; and make an opened one the GPU of the calls that
 * follow. */
void gpu_open_number(int number, struct gpu *gpu);
void gpu_use(int number);

/* Open the first GPU that the driver lets this process see, and use it. False with the reason in `why` if
 * there is none. From then on every error ends the program. */
bool gpu_open(struct gpu *gpu, char *why, size_t room);

/* Open the second GPU that the driver lets this process see, for copies between the two; false: there is
 * none. `direct`: the first can read and write its memory; else the driver copies through the host. */
bool gpu_open_second(struct gpu *gpu, bool *direct);

/* Allocate and free `bytes` of the memory of the GPU in use. */
gpu_pointer gpu_take(size_t bytes);
void gpu_give_back(gpu_pointer memory);

/* Allocate and free `bytes` of the second GPU's memory. */
gpu_pointer gpu_take_second(size_t bytes);
void gpu_give_back_second(gpu_pointer memory);

/* Pin and unpin host memory. */
void gpu_pin(void *memory, size_t bytes);
void gpu_unpin(void *memory);

gpu_stream gpu_stream_new(void);
void gpu_wait(gpu_stream stream);
void gpu_copy_in(gpu_pointer to, const void *from, size_t bytes, gpu_stream stream);
void gpu_copy_out(void *to, gpu_pointer from, size_t bytes, gpu_stream stream);

/* Copies from the first GPU to the second, and back. All copies are asynchronous: gpu_wait waits for them. */
void gpu_copy_over(gpu_pointer to, gpu_pointer from, size_t bytes, gpu_stream stream);
void gpu_copy_back(gpu_pointer to, gpu_pointer from, size_t bytes, gpu_stream stream);

/* Compile PTX text and return its function `name`. */
gpu_function gpu_load(const char *ptx, const char *name);
void gpu_start(gpu_function function, unsigned blocks, unsigned threads, void **parameters,
               gpu_stream stream);

#endif
