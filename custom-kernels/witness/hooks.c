/* The functions that this library replaces. Each calls the real one, found by RTLD_NEXT or, for
 * threads, by next_function. Those of MPI are in mpi_hooks.c.
 *
 * malloc and calloc are not wrapped: dlsym may call them. free may come before the constructor has run (other
 * libraries' constructors, the dynamic linker itself), so the real function is looked up on demand; what that
 * look-up itself frees is leaked. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "witness.h"

_Static_assert(sizeof(off_t) == 8, "mmap and mmap64 must be the same call");

typedef void (*free_function)(void *);
typedef void *(*realloc_function)(void *, size_t);
typedef size_t (*usable_function)(void *);
typedef void *(*mmap_function)(void *, size_t, int, int, int, off_t);
typedef int (*munmap_function)(void *, size_t);
typedef void *(*mremap_function)(void *, size_t, size_t, int, ...);
typedef int (*bind_function)(pid_t, size_t, const cpu_set_t *);
typedef int (*bind_thread_function)(pthread_t, size_t, const cpu_set_t *);
typedef void (*exit_function)(int);
typedef int (*action_function)(int, const struct sigaction *, struct sigaction *);
typedef void *(*routine)(void *);
typedef int (*create_function)(pthread_t *, const pthread_attr_t *, routine, void *);

/* UCX and Open MPI watch mappings by writing a jump over the begin of the function that dlsym finds under
 * such a name. If that were ours, it would never run again. Programs ask for the C library's version of a
 * name, dlsym for none, and gets no function whose version is not the default one: so ours have the C
 * library's version, and are not its default. */
#ifdef LIBC_VERSION
#define INSTEAD_OF(name)
__asm__(".symver plumb_mmap,mmap@" LIBC_VERSION);
__asm__(".symver plumb_mmap64,mmap64@" LIBC_VERSION);
__asm__(".symver plumb_munmap,munmap@" LIBC_VERSION);
__asm__(".symver plumb_mremap,mremap@" LIBC_VERSION);
#else
#define INSTEAD_OF(name) __asm__(name)
#endif

EXPORT void free(void *block);
EXPORT void *realloc(void *block, size_t size);
EXPORT void *plumb_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
    INSTEAD_OF("mmap");
EXPORT void *plumb_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
    INSTEAD_OF("mmap64");
EXPORT int plumb_munmap(void *address, size_t length) INSTEAD_OF("munmap");
EXPORT void *plumb_mremap(void *address, size_t old_length, size_t new_length, int flags, ...)
    INSTEAD_OF("mremap");
EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, routine begin, void *argument);
EXPORT int sched_setaffinity(pid_t thread, size_t size, const cpu_set_t *cpus);
EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus);
EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before);
EXPORT _Noreturn void _exit(int status);
EXPORT _Noreturn void _Exit(int status);
EXPORT ssize_t process_vm_readv(pid_t process, const struct iovec *local, unsigned long locals,
                                const struct iovec *remote, unsigned long remotes, unsigned long flags);
EXPORT ssize_t process_vm_writev(pid_t process, const struct iovec *local, unsigned long locals,
                                 const struct iovec *remote, unsigned long remotes, unsigned long flags);

static _Atomic any_function real_free;
static _Atomic any_function real_realloc;
static _Atomic any_function real_usable;
static _Atomic any_function real_mmap;
static _Atomic any_function real_munmap;
static _Atomic any_function real_mremap;
static _Atomic any_function real_bind;
static _Atomic any_function real_bind_thread;
static _Atomic any_function real_action;
static _Atomic any_function real_exit;
static __thread bool resolving;

static any_function find(_Atomic any_function *slot, const char *name) {
    any_function known = atomic_load_explicit(slot, memory_order_acquire);
    if (known != NULL || resolving)
        return known;
    resolving = true;
    known = as_function(dlsym(RTLD_NEXT, name));
    resolving = false;
    atomic_store_explicit(slot, known, memory_order_release);
    return known;
}

bool hooks_resolve(void) {
    find(&real_realloc, "realloc");
    find(&real_mmap, "mmap");
    find(&real_munmap, "munmap");
    find(&real_mremap, "mremap");
    find(&real_action, "sigaction");
    find(&real_exit, "_exit");
    const void *allocator = object_of(find(&real_free, "free"));
    /* An allocator that has its own free but not malloc_usable_size cannot be asked for sizes. */
    return allocator != NULL && allocator == object_of(find(&real_usable, "malloc_usable_size"));
}

static size_t usable(void *block) {
    any_function function = atomic_load_explicit(&real_usable, memory_order_relaxed);
    return function == NULL ? 0 : ((usable_function)function)(block);
}

static void note_block(void *block) {
    size_t size = usable(block);
    if (size >= WITNESS_THRESHOLD_BYTES)
        freed_block((uintptr_t)block, size);
}

void free(void *block) {
    any_function real = find(&real_free, "free");
    if (block != NULL && freed_watching())
        note_block(block);
    if (real != NULL)
        ((free_function)real)(block);
}

void *realloc(void *block, size_t size) {
    any_function real = find(&real_realloc, "realloc");
    if (real == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    /* The block may move and its old pages go; one that stays is counted twice, on the nodes where it lies.
     */
    if (block != NULL && freed_watching())
        note_block(block);
    return ((realloc_function)real)(block, size);
}

static void note_mapping(void *mapping, size_t length, int flags) {
    if ((flags & MAP_FIXED) != 0)
        freed_unmapping((uintptr_t)mapping, length, false);
    if ((flags & MAP_ANONYMOUS) != 0 && length >= WITNESS_THRESHOLD_BYTES)
        freed_mapped((uintptr_t)mapping, length);
}

void *plumb_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    any_function real = find(&real_mmap, "mmap");
    void *mapping;
    if (real != NULL)
        mapping = ((mmap_function)real)(address, length, protection, flags, fd, offset);
    else
        mapping = (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
    if (mapping != MAP_FAILED && freed_watching())
        note_mapping(mapping, length, flags);
    return mapping;
}

void *plumb_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    return plumb_mmap(address, length, protection, flags, fd, offset);
}

int plumb_munmap(void *address, size_t length) {
    if (freed_watching())
        freed_unmapping((uintptr_t)address, length, true);
    any_function real = find(&real_munmap, "munmap");
    return real != NULL ? ((munmap_function)real)(address, length)
                        : (int)syscall(SYS_munmap, address, length);
}

void *plumb_mremap(void *address, size_t old_length, size_t new_length, int flags, ...) {
    void *wanted = NULL;
    if ((flags & MREMAP_FIXED) != 0) {
        va_list rest;
        va_start(rest, flags);
        wanted = va_arg(rest, void *);
        va_end(rest);
    }
    bool tracked = freed_watching() && freed_tracks((uintptr_t)address);
    any_function real = find(&real_mremap, "mremap");
    void *moved = real != NULL ? ((mremap_function)real)(address, old_length, new_length, flags, wanted)
                               : (void *)syscall(SYS_mremap, address, old_length, new_length, flags, wanted);
    if (moved != MAP_FAILED && tracked) {
        freed_unmapping((uintptr_t)address, old_length, false);
        freed_mapped((uintptr_t)moved, new_length);
    }
    return moved;
}

/* The two system calls by which MPI libraries copy from rank to rank directly ("CMA"). One that is refused
 * copies nothing. */
ssize_t process_vm_readv(pid_t process, const struct iovec *local, unsigned long locals,
                         const struct iovec *remote, unsigned long remotes, unsigned long flags) {
    ssize_t copied = syscall(SYS_process_vm_readv, process, local, locals, remote, remotes, flags);
    transports_copied(copied);
    return copied;
}

ssize_t process_vm_writev(pid_t process, const struct iovec *local, unsigned long locals,
                          const struct iovec *remote, unsigned long remotes, unsigned long flags) {
    ssize_t copied = syscall(SYS_process_vm_writev, process, local, locals, remote, remotes, flags);
    transports_copied(copied);
    return copied;
}

int sched_setaffinity(pid_t thread, size_t size, const cpu_set_t *cpus) {
    any_function real = find(&real_bind, "sched_setaffinity");
    struct departure before = excursions_before(thread, cpus, size);
    int status = real != NULL ? ((bind_function)real)(thread, size, cpus)
                              : (int)syscall(SYS_sched_setaffinity, thread, size, cpus);
    excursions_after(before);
    return status;
}

/* The clock of a thread has its number (usage.c makes one of the number). */
int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus) {
    any_function real = find(&real_bind_thread, "pthread_setaffinity_np");
    clockid_t clock;
    if (real == NULL || pthread_getcpuclockid(thread, &clock) != 0)
        return real == NULL ? ENOSYS : ((bind_thread_function)real)(thread, size, cpus);
    struct departure before = excursions_before((pid_t) ~((unsigned)clock >> 3 | 7U << 29), cpus, size);
    int status = ((bind_thread_function)real)(thread, size, cpus);
    excursions_after(before);
    return status;
}

/* Who asks for the handlers of waiting.c learns of the default: Python could not restore others. */
int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    any_function real = find(&real_action, "sigaction");
    int status = real != NULL ? ((action_function)real)(number, action, before) : -1;
    if (status == 0 && before != NULL && waiting_answers(before))
        memset(before, 0, sizeof *before);
    return status;
}

/* exit() ends by a call of its own, not by these. Tools such as Darshan write their own files in _exit. */
void _exit(int status) {
    witness_exit(status);
    any_function real = find(&real_exit, "_exit");
    if (real != NULL)
        ((exit_function)real)(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

void _Exit(int status) {
    _exit(status);
}

/* What a new thread is to run, until it has begun. */
static struct beginning {
    atomic_bool taken;
    routine begin;
    void *argument;
} beginnings[256];
static pthread_key_t end_of_thread;
static bool ends_are_seen;

static void at_thread_end(void *unused) {
    (void)unused;
    if (preload_is_mine())
        threads_end();
}

static void *begin_thread(void *context) {
    struct beginning *slot = context;
    routine begin = slot->begin;
    void *argument = slot->argument;
    atomic_store(&slot->taken, false);
    pthread_setspecific(end_of_thread, beginnings); /* any value: at_thread_end is called for it */
    threads_begin();
    return begin(argument);
}

static struct beginning *take_beginning(void) {
    for (size_t i = 0; ends_are_seen && i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (!atomic_exchange(&beginnings[i].taken, true))
            return &beginnings[i];
    return NULL;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, routine begin, void *argument) {
    static _Atomic any_function real_create;
    any_function real = atomic_load(&real_create);
    if (real == NULL) {
        real = next_function("pthread_create");
        atomic_store(&real_create, real);
    }
    if (real == NULL)
        return EAGAIN;
    struct beginning *slot = take_beginning();
    if (slot == NULL)
        return ((create_function)real)(thread, attributes, begin, argument);
    slot->begin = begin;
    slot->argument = argument;
    int fault = ((create_function)real)(thread, attributes, begin_thread, slot);
    if (fault != 0)
        atomic_store(&slot->taken, false);
    return fault;
}

void hooks_watch_threads(void) {
    ends_are_seen = pthread_key_create(&end_of_thread, at_thread_end) == 0;
}
