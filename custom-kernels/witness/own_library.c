/* The process's own MPI library: its file, and the number of ranks in MPI_COMM_WORLD. A program that was
 * built for another library than that of its launcher runs as many worlds of one rank each. */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_library.h"
#include "witness.h"

typedef int (*flag_function)(int *);
typedef int (*size_function)(void *comm, int *size);

static int world;
static bool called; /* a function of MPI was, and found */

any_function library_function(const char *name) {
    char profiling[40] = {name[0] == 'M' ? 'P' : 'p'};
    any_function real = next_function(name);
    if (real == NULL)
        real = next_function(strncat(profiling, name, sizeof profiling - 2));
    called = called || real != NULL;
    if (real == NULL)
        preload_complain("a function of MPI that the program calls was not found: %s", name);
    return real;
}

static int is_of_mpi(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    return strcasestr(object->dlpi_name, "mpi") != NULL;
}

/* dlsym(3) allocates where it finds nothing: not in a program without MPI, which may end in a handler of a
 * signal that interrupted malloc. */
static bool answers_yes(const char *name) {
    bool there = called || dl_iterate_phdr(is_of_mpi, NULL) != 0;
    any_function function = there ? next_function(name) : NULL;
    int flag = 0;
    return function != NULL && ((flag_function)function)(&flag) == 0 && flag != 0;
}

/* PMPI: a tool that is linked or preloaded has MPI_Initialized too, and may count its calls. */
bool library_initialised(void) {
    return answers_yes("PMPI_Initialized");
}

bool library_running(void) {
    return library_initialised() && !answers_yes("PMPI_Finalized");
}

/* A handle of 4 bytes is passed in the same register as one of 8. */
void library_note(void) {
    int saved = errno;
    any_function size = next_function("PMPI_Comm_size");
    struct abi abi = mpi_abi(size);
    if (world == 0 && abi.world != 0 && library_running() &&
        ((size_function)size)((void *)(uintptr_t)abi.world, &world) != 0)
        world = 0;
    errno = saved;
}

void library_forget(void) {
    world = 0;
}

void library_write(struct json *out, bool forked) {
    static char path[PATH_MAX];
    bool initialised = !forked && library_initialised();
    const char *file = initialised ? mpi_file(next_function("PMPI_Initialized")) : NULL;
    json_bool(out, "mpi", initialised);
    if (file != NULL && realpath(file, path) != NULL)
        json_text(out, "mpi_library", path);
    if (world > 0)
        json_int(out, "world", world);
}
