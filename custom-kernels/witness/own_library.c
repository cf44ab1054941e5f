/* The process's own MPI library: its file, and the number of ranks in MPI_COMM_WORLD. A program that was
 * built for another library than that of its launcher runs as many worlds of one rank each. */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_library.h"
#include "witness.h"

typedef int (*flag_function)(int *);
typedef int (*size_function)(void *comm, int *size);
typedef int (*set_function)(void *session, const char *name, uint64_t *group);
typedef int (*free_function)(uint64_t *group);

static int world;
static bool called;         /* a function of MPI was, and found */
static atomic_int sessions; /* that are open */
static bool had_session;
static bool has_world; /* MPI_Init was called: Intel MPI's MPI_Initialized is true in a session, too */

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
    return had_session || answers_yes("PMPI_Initialized");
}

bool library_running(void) {
    return atomic_load(&sessions) > 0 || (answers_yes("PMPI_Initialized") && !answers_yes("PMPI_Finalized"));
}

/* A handle of 4 bytes is passed in the same register as one of 8. */
void library_note(void) {
    int saved = errno;
    has_world = true;
    any_function size = next_function("PMPI_Comm_size");
    struct abi abi = mpi_abi(size);
    if (world == 0 && abi.world != 0 && library_running() &&
        ((size_function)size)((void *)(uintptr_t)abi.world, &world) != 0)
        world = 0;
    errno = saved;
}

/* Where there is no MPI_COMM_WORLD: the standard has the set of its processes in every session. */
static void note_set(const void *session) {
    any_function set = next_function("PMPI_Group_from_session_pset");
    any_function size = next_function("PMPI_Group_size"), release = next_function("PMPI_Group_free");
    unsigned bytes = set == NULL ? 0 : mpi_abi(set).handle;
    uint64_t handle = 0, group = 0;
    if (world != 0 || bytes == 0 || size == NULL || release == NULL)
        return;
    memcpy(&handle, session, bytes);
    if (((set_function)set)((void *)(uintptr_t)handle, "mpi://WORLD", &group) != 0)
        return;
    if (((size_function)size)((void *)(uintptr_t)group, &world) != 0)
        world = 0;
    ((free_function)release)(&group);
}

bool library_opened(const void *session) {
    bool first = atomic_fetch_add(&sessions, 1) == 0 && !has_world;
    had_session = true;
    if (first)
        note_set(session);
    return first;
}

bool library_closes(void) {
    return atomic_fetch_sub(&sessions, 1) == 1 && !has_world;
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
