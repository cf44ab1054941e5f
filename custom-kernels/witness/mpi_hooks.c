/* MPI_Init, MPI_Init_thread and MPI_Finalize, for C and Fortran: between them the figures are made. In a
 * program without them, it is the time in which it has a session; of several such times, the last one.
 *
 * Open MPI's Fortran functions call PMPI_Init and its kind directly, those of MPICH may call MPI_Init, and a
 * tool that is linked into the program has MPI_Init in place of ours and calls PMPI_Init: where several are
 * seen, the last to return begins the window and the first to be called ends it. */
#include <stddef.h>

#include "witness.h"

typedef int (*init_function)(int *, char ***);
typedef int (*init_thread_function)(int *, char ***, int, int *);
typedef int (*finalize_function)(void);
typedef int (*session_init_function)(void *, void *, void *);
typedef int (*session_finalize_function)(void *);
typedef void (*fortran_function)(int *);
typedef void (*fortran_thread_function)(const int *, int *, int *);

EXPORT int MPI_Init(int *count, char ***words);
EXPORT int MPI_Init_thread(int *count, char ***words, int required, int *provided);
EXPORT int MPI_Finalize(void);
EXPORT int PMPI_Init(int *count, char ***words);
EXPORT int PMPI_Init_thread(int *count, char ***words, int required, int *provided);
EXPORT int PMPI_Finalize(void);
EXPORT int MPI_Session_init(void *info, void *handler, void *session);
EXPORT int MPI_Session_finalize(void *session);
EXPORT int PMPI_Session_init(void *info, void *handler, void *session);
EXPORT int PMPI_Session_finalize(void *session);
EXPORT void mpi_init_(int *error);
EXPORT void mpi_init_f08_(int *error);
EXPORT void mpi_init_thread_(const int *required, int *provided, int *error);
EXPORT void mpi_init_thread_f08_(const int *required, int *provided, int *error);
EXPORT void mpi_finalize_(int *error);
EXPORT void mpi_finalize_f08_(int *error);

static bool over;

static void begins(void) {
    over = false;
    clocks_find(library_running());
    threads_count_from_here();
    window_begin();
}

static void began(int status) {
    if (!preload_is_mine())
        return;
    if (status == 0)
        library_note();
    begins();
}

static void ends(void) {
    if (over || !preload_is_mine())
        return;
    over = true;
    window_end();
    threads_remember();
    transports_note();
    devices_note();
    settings_read();
}

static int init_c(const char *name, int *count, char ***words) {
    any_function real = library_function(name);
    int status = real == NULL ? 1 : ((init_function)real)(count, words);
    began(status);
    return status;
}

static int init_thread_c(const char *name, int *count, char ***words, int required, int *provided) {
    any_function real = library_function(name);
    int status = real == NULL ? 1 : ((init_thread_function)real)(count, words, required, provided);
    began(status);
    return status;
}

static int finalize_c(const char *name) {
    any_function real = library_function(name);
    ends();
    return real == NULL ? 1 : ((finalize_function)real)();
}

int MPI_Init(int *count, char ***words) {
    return init_c("MPI_Init", count, words);
}

int PMPI_Init(int *count, char ***words) {
    return init_c("PMPI_Init", count, words);
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided) {
    return init_thread_c("MPI_Init_thread", count, words, required, provided);
}

int PMPI_Init_thread(int *count, char ***words, int required, int *provided) {
    return init_thread_c("PMPI_Init_thread", count, words, required, provided);
}

int MPI_Finalize(void) {
    return finalize_c("MPI_Finalize");
}

int PMPI_Finalize(void) {
    return finalize_c("PMPI_Finalize");
}

static int session_init(const char *name, void *info, void *handler, void *session) {
    any_function real = library_function(name);
    int status = real == NULL ? 1 : ((session_init_function)real)(info, handler, session);
    if (status == 0 && preload_is_mine() && library_opened(session))
        begins();
    return status;
}

static int session_finalize(const char *name, void *session) {
    any_function real = library_function(name);
    if (library_closes())
        ends();
    return real == NULL ? 1 : ((session_finalize_function)real)(session);
}

int MPI_Session_init(void *info, void *handler, void *session) {
    return session_init("MPI_Session_init", info, handler, session);
}

int PMPI_Session_init(void *info, void *handler, void *session) {
    return session_init("PMPI_Session_init", info, handler, session);
}

int MPI_Session_finalize(void *session) {
    return session_finalize("MPI_Session_finalize", session);
}

int PMPI_Session_finalize(void *session) {
    return session_finalize("PMPI_Session_finalize", session);
}

/* The module mpi_f08 lets a program leave the argument of errors out. */
static int *or_own(int *error) {
    static int own;
    int *used = error == NULL ? &own : error;
    *used = 1;
    return used;
}

static void init(const char *name, int *error) {
    any_function real = library_function(name);
    int *status = or_own(error);
    if (real != NULL)
        ((fortran_function)real)(status);
    began(*status);
}

static void init_thread(const char *name, const int *required, int *provided, int *error) {
    any_function real = library_function(name);
    int *status = or_own(error);
    if (real != NULL)
        ((fortran_thread_function)real)(required, provided, status);
    began(*status);
}

static void finalize(const char *name, int *error) {
    any_function real = library_function(name);
    int *status = or_own(error);
    ends();
    if (real != NULL)
        ((fortran_function)real)(status);
}

void mpi_init_(int *error) {
    init("mpi_init_", error);
}

void mpi_init_f08_(int *error) {
    init("mpi_init_f08_", error);
}

void mpi_init_thread_(const int *required, int *provided, int *error) {
    init_thread("mpi_init_thread_", required, provided, error);
}

void mpi_init_thread_f08_(const int *required, int *provided, int *error) {
    init_thread("mpi_init_thread_f08_", required, provided, error);
}

void mpi_finalize_(int *error) {
    finalize("mpi_finalize_", error);
}

void mpi_finalize_f08_(int *error) {
    finalize("mpi_finalize_f08_", error);
}
