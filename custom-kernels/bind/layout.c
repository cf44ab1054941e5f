#include "layout.h"

#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layout new_layout(unsigned ranks, unsigned threads) {
    struct layout layout = {.ranks = ranks, .threads = threads};
    layout.cpu = allocate((size_t)ranks * threads, sizeof *layout.cpu);
    return layout;
}

void free_layout(struct layout *layout) {
    free(layout->cpu);
    free(layout->device);
}

void place_rank(struct layout *layout, unsigned rank, const unsigned *os) {
    memcpy(layout->cpu + (size_t)rank * layout->threads, os, layout->threads * sizeof *os);
}

void cannot(const struct request *request, const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fail("placement %s: %s on %s", request->placement->name, message, request->machine->where);
}

unsigned ranks_within(const struct request *request, size_t room, const char *things) {
    if (request->ranks > room)
        cannot(request, "%u rank%s asked, %zu %s", request->ranks, request->ranks == 1 ? "" : "s", room,
               things);
    return request->ranks ? request->ranks : (unsigned)room;
}

void must_know_ranks(const struct request *request, const char *depends) {
    if (request->ranks && !request->ranks_known)
        cannot(request, "the launcher reports the local rank but not the number of ranks, which %s", depends);
}

unsigned threads_within(const struct request *request, size_t available, const char *things) {
    if (request->threads > available)
        cannot(request, "%u threads a rank asked, %zu core%s in the smallest of the %s used",
               request->threads, available, available == 1 ? "" : "s", things);
    if (!request->threads)
        must_know_ranks(request, "the default number of threads depends on: give --threads");
    return request->threads ? request->threads : (unsigned)available;
}

void single_thread(const struct request *request) {
    if (request->threads > 1)
        cannot(request, "%u threads a rank asked, this placement has one", request->threads);
}
