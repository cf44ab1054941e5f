/* Copies and a triad as a program of NVIDIA's runtime has them, without code of the kernels: lines "NAME MB/s", the
 * best of LOOPS by the GPU's own clock. plain_gpu BYTES LOOPS
 */
#include <cstdio>
#include <cstdlib>

static void must(cudaError_t status) {
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "plain_gpu: %s\n", cudaGetErrorString(status));
    exit(1);
}

__global__ void triad(double *a, const double *b, const double *c, double s, size_t count) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        a[i] = b[i] + s * c[i];
}

/* The best rate of `work`, which moves `moved` bytes, in MB/s. */
template <class Work> static double best(int loops, size_t moved, Work work) {
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    double rate = 0;
    for (int loop = 0; loop <= loops; loop++) {
        float ms = 0;
        must(cudaEventRecord(begin));
        work();
        must(cudaEventRecord(end));
        must(cudaEventSynchronize(end));
        must(cudaEventElapsedTime(&ms, begin, end));
        double now = (double)moved / ms * 1e-3;
        rate = loop > 0 && now > rate ? now : rate;
    }
    return rate;
}

int main(int argc, char **argv) {
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, count = bytes / sizeof(double);
    int loops = argc > 2 ? atoi(argv[2]) : 0, processors;
    void *host;
    double *a, *b, *c;
    must(cudaMallocHost(&host, bytes));
    must(cudaMalloc(&a, bytes));
    must(cudaMalloc(&b, bytes));
    must(cudaMalloc(&c, bytes));
    must(cudaMemset(b, 0, bytes));
    must(cudaMemset(c, 0, bytes));
    must(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    auto in = [&] { must(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice)); };
    auto out = [&] { must(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost)); };
    auto add = [&] { triad<<<8 * processors, 256>>>(a, b, c, 0.5, count); };
    printf("in %.0f\n", best(loops, bytes, in));
    printf("out %.0f\n", best(loops, bytes, out));
    printf("triad %.0f\n", best(loops, 3 * bytes, add));
    must(cudaGetLastError());
    return 0;
}
