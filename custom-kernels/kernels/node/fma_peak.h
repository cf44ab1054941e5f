/* The floating-point peak of the processor, measured. */
#ifndef PLUMB_FMA_PEAK_H
#define PLUMB_FMA_PEAK_H

/* Fused multiply-adds between registers, `loops` times in enough independent chains that neither latency nor
 * memory matters, by the calling thread. Returns the floating-point operations done; `sink` receives a value
 * that depends on all of them. */
double fma_work(long loops, double *sink);

#endif
