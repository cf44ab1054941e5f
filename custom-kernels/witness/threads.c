#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procfile.h"
#include "witness.h"

#define LARGEST_MASK_BYTES ((size_t)1 << 17) /* a million CPUs */
#define MASK_BYTES 1024    /* of 8192 CPUs, because stacks may be small: on more, excursions are not seen */
#define SPARE_THREADS 64   /* may start between counting and listing */
#define ENDED_THREADS 1024 /* of different bindings */
#define WORKED_US 10000    /* of CPU time, of a thread whose waits are worth the call */

struct thread {
    pid_t tid;
    int last_cpu;
    long migrations;  /* from CPU to CPU; -1: the kernel does not report it */
    long long cpu;    /* microseconds of CPU time */
    long long waited; /* microseconds for a CPU, of threads that have ended; -1: not asked */
    struct away away;
    struct scheduling scheduling;
    char name[32];
    size_t mask_used; /* bytes of the mask that the kernel filled */
    unsigned char mask[];
};

struct table {
    size_t count;
    size_t capacity;
    char *rooms;
};

static size_t mask_bytes;
static unsigned char *start_mask;
static size_t start_mask_used;
static unsigned char *home; /* mask of the CPUs of the rank */
static struct table remembered;
static struct table ended;
static atomic_flag ended_busy = ATOMIC_FLAG_INIT;
static long first_migrations;            /* of the thread that began, when the witness did */
static atomic_int started, started_most; /* threads that were created and have not ended: now, at most */

static size_t get_mask(pid_t tid, unsigned char *mask, size_t size) {
    long got = syscall(SYS_sched_getaffinity, tid, size, mask);
    return got > 0 ? (size_t)got : 0;
}

/* The kernel refuses masks shorter than its number of possible CPUs, and reports that number nowhere else. */
static size_t find_mask_bytes(void) {
    for (size_t size = 128; size <= LARGEST_MASK_BYTES; size *= 2) {
        unsigned char *mask = preload_room(size);
        if (mask == NULL)
            break;
        start_mask_used = get_mask(0, mask, size);
        if (start_mask_used > 0) {
            start_mask = mask;
            return size;
        }
    }
    return 0;
}

/* "se.nr_migrations   :   3" in /proc/self/task/TID/sched. */
static long read_migrations(const char *tid) {
    char path[64];
    char text[2048]; /* it is in the first lines */
    snprintf(path, sizeof path, "/proc/self/task/%.16s/sched", tid);
    char *found = read_text(path, text, sizeof text) ? strstr(text, "nr_migrations") : NULL;
    char *colon = found == NULL ? NULL : strchr(found, ':');
    return colon == NULL ? -1 : strtol(colon + 1, NULL, 10);
}

void threads_count_from_here(void) {
    char tid[24];
    int saved = errno;
    snprintf(tid, sizeof tid, "%ld", (long)getpid());
    first_migrations = read_migrations(tid);
    excursions_count_from_here(getpid());
    errno = saved;
}

long threads_migrations(pid_t tid) {
    char text[24];
    snprintf(text, sizeof text, "%ld", (long)tid);
    return read_migrations(text);
}

/* The kernel's masks are arrays of longs: on big-endian machines the bytes of each are swapped. */
static size_t place_of(size_t byte) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? byte : byte ^ (sizeof(long) - 1);
}

/* From "cpus":[0,1]. */
static void find_home(const char *plan) {
    home = mask_bytes > 0 ? preload_room(mask_bytes) : NULL;
    if (home == NULL)
        return;
    const char *at = strstr(plan, "\"cpus\"");
    at = at == NULL ? NULL : strchr(at, '[');
    if (at == NULL)
        memcpy(home, start_mask, mask_bytes);
    while (at != NULL && *at != ']' && *at != '\0') {
        char *end;
        unsigned long cpu = strtoul(at + 1, &end, 10);
        if (cpu / 8 < mask_bytes && end != at + 1)
            home[place_of(cpu / 8)] |= (unsigned char)(1U << cpu % 8);
        at = strpbrk(end, ",]");
    }
}

bool threads_leaves(const void *cpus, size_t size) {
    const unsigned char *mask = cpus;
    /* no more than the kernel reads: programs name sizes that are larger than their masks */
    for (size_t i = 0; home != NULL && mask != NULL && i < size && i < start_mask_used; i++)
        if ((mask[i] & ~home[i]) != 0)
            return true;
    return false;
}

bool threads_is_outside(pid_t tid) {
    unsigned char mask[MASK_BYTES];
    return mask_bytes <= sizeof mask && threads_leaves(mask, get_mask(tid, mask, sizeof mask));
}

void threads_start(const char *plan) {
    mask_bytes = find_mask_bytes();
    find_home(plan);
    threads_count_from_here();
}

static size_t stride(void) {
    return (sizeof(struct thread) + mask_bytes + 15) & ~(size_t)15;
}

static struct thread *thread_at(const struct table *table, size_t index) {
    return (struct thread *)(void *)(table->rooms + index * stride());
}

/* Takes name and last CPU from /proc/self/task/TID/stat: "TID (name) S ..."; the name may hold anything. */
static bool read_stat(const char *tid, struct thread *thread) {
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/self/task/%.16s/stat", tid);
    if (!read_text(path, text, sizeof text))
        return false;
    char *open_bracket = strchr(text, '(');
    char *close_bracket = strrchr(text, ')');
    if (open_bracket == NULL || close_bracket == NULL)
        return false;
    size_t length = (size_t)(close_bracket - open_bracket) - 1;
    if (length >= sizeof thread->name)
        length = sizeof thread->name - 1;
    memcpy(thread->name, open_bracket + 1, length);
    thread->name[length] = '\0';
    char *at = close_bracket + 1;
    for (int field = 3; field < 39; field++) { /* the state, field 3, follows the bracket; 39 is the CPU */
        at = strchr(at + 1, ' ');
        if (at == NULL)
            return false;
    }
    thread->last_cpu = atoi(at + 1);
    return true;
}

/* A thread that ends while it is being looked at is left out. */
static void add_thread(const char *tid, void *context) {
    struct table *table = context;
    if (table->count == table->capacity)
        return;
    struct thread *thread = thread_at(table, table->count);
    thread->tid = (pid_t)atoi(tid);
    thread->mask_used = get_mask(thread->tid, thread->mask, mask_bytes);
    thread->migrations = read_migrations(tid);
    thread->cpu = cpu_of_thread(thread->tid);
    thread->waited = -1;
    thread->away = excursions_of(thread->tid, false);
    thread->scheduling = scheduling_of(thread->tid);
    if (thread->tid == getpid() && thread->migrations >= first_migrations)
        thread->migrations -= first_migrations;
    if (thread->mask_used > 0 && read_stat(tid, thread))
        table->count++;
}

/* Without /proc, only the calling thread is recorded. */
static void add_caller(struct table *table) {
    struct thread *thread = thread_at(table, 0);
    thread->tid = (pid_t)syscall(SYS_gettid);
    thread->last_cpu = sched_getcpu();
    thread->mask_used = get_mask(0, thread->mask, mask_bytes);
    thread->migrations = -1;
    thread->cpu = cpu_of_thread(0);
    thread->waited = -1;
    thread->away = excursions_of(thread->tid, false);
    thread->scheduling = scheduling_of(0);
    memcpy(thread->name, "?", 2);
    table->count = 1;
}

static bool capture(struct table *table) {
    struct stat links;
    int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t threads = directory >= 0 && fstat(directory, &links) == 0 ? (size_t)links.st_nlink : 1;
    table->count = 0;
    table->capacity = threads + SPARE_THREADS;
    table->rooms = preload_room(table->capacity * stride());
    if (table->rooms != NULL && directory >= 0)
        entries_visit(directory, add_thread, table);
    if (directory >= 0)
        close(directory);
    if (table->rooms != NULL && table->count == 0)
        add_caller(table);
    return table->rooms != NULL;
}

void threads_remember(void) {
    int saved = errno;
    if (remembered.rooms == NULL)
        capture(&remembered);
    errno = saved;
}

void threads_forget(void) {
    remembered = (struct table){0, 0, NULL};
    atomic_store(&started, 0);
    atomic_store(&started_most, 0);
    ended.count = 0;
    atomic_flag_clear(&ended_busy);
    threads_count_from_here();
    start_mask_used = get_mask(0, start_mask, mask_bytes);
}

static void write_mask(struct json *out, const unsigned char *mask, size_t used) {
    json_open(out, "affinity", '[');
    for (size_t byte = 0; byte < used; byte++) {
        for (unsigned bit = 0; bit < 8; bit++)
            if ((mask[place_of(byte)] >> bit & 1U) != 0)
                json_int(out, NULL, (long long)(byte * 8 + bit));
    }
    json_close(out, ']');
}

static void write_thread(struct json *out, const struct thread *thread) {
    json_open(out, NULL, '{');
    json_int(out, "tid", thread->tid);
    json_text(out, "name", thread->name);
    write_mask(out, thread->mask, thread->mask_used);
    json_int(out, "last_cpu", thread->last_cpu);
    if (thread->migrations >= 0)
        json_int(out, "migrations", thread->migrations);
    json_seconds(out, "cpu_s", thread->cpu);
    if (thread->waited >= 0)
        json_seconds(out, "waited_s", thread->waited);
    if (thread->away.cpu != 0 || thread->away.migrations != 0) {
        json_seconds(out, "away_s", thread->away.cpu);
        json_int(out, "away_migrations", thread->away.migrations);
        json_seconds(out, "away_until_s", thread->away.until);
    }
    scheduling_write(out, thread->scheduling);
    json_close(out, '}');
}

/* On the same CPUs, with the same rights to them. */
static bool alike(const struct thread *a, const struct thread *b) {
    return a->mask_used == b->mask_used && memcmp(a->mask, b->mask, a->mask_used) == 0 &&
           a->scheduling.policy == b->scheduling.policy && a->scheduling.nice == b->scheduling.nice;
}

static bool same_binding(const struct thread *a, const struct thread *b) {
    return a->tid == b->tid && alike(a, b);
}

static bool holds(const struct table *table, const struct thread *wanted) {
    for (size_t i = 0; i < table->count; i++)
        if (same_binding(thread_at(table, i), wanted))
            return true;
    return false;
}

void threads_begin(void) {
    int now = atomic_fetch_add(&started, 1) + 1;
    int most = atomic_load(&started_most);
    while (now > most && !atomic_compare_exchange_weak(&started_most, &most, now))
        ;
}

/* Called in a thread at its end. It is recorded unless one with the same binding has been already. */
void threads_end(void) {
    int saved = errno;
    atomic_fetch_sub(&started, 1);
    while (atomic_flag_test_and_set(&ended_busy))
        sched_yield();
    long long cpu = usage_thread_ended();
    if (ended.rooms == NULL) {
        ended.capacity = ENDED_THREADS;
        ended.rooms = preload_room(ended.capacity * stride());
    }
    if (ended.rooms != NULL && ended.count < ended.capacity) {
        struct thread *thread = thread_at(&ended, ended.count);
        thread->tid = (pid_t)syscall(SYS_gettid);
        thread->last_cpu = sched_getcpu();
        thread->migrations = -1;
        thread->cpu = cpu;
        thread->waited = cpu < WORKED_US ? 0 : window_waited(thread->tid);
        thread->away = excursions_of(thread->tid, true);
        thread->scheduling = scheduling_of(0);
        thread->mask_used = get_mask(0, thread->mask, mask_bytes);
        memset(thread->name, 0, sizeof thread->name);
        prctl(PR_GET_NAME, thread->name);
        bool known = false;
        for (size_t i = 0; i < ended.count && !known; i++) {
            struct thread *other = thread_at(&ended, i);
            known = alike(other, thread);
            if (known) {
                other->cpu += cpu;
                other->waited += thread->waited;
                other->away.cpu += thread->away.cpu;
                other->away.migrations += thread->away.migrations;
                if (thread->away.until > other->away.until)
                    other->away.until = thread->away.until;
            }
        }
        ended.count += !known;
    }
    atomic_flag_clear(&ended_busy);
    errno = saved;
}

void threads_write_start(struct json *out) {
    json_open(out, "start", '{');
    write_mask(out, start_mask, start_mask_used);
    scheduling_write_start(out);
    json_close(out, '}');
}

/* "threads": those that exist now, and those that were seen at MPI_Finalize and have ended since or had
 * another binding. "ended": of the threads that ended while the program ran, one for each
 * binding and scheduling, with the CPU time of all. */
void threads_write(struct json *out) {
    struct table present = {0, 0, NULL};
    capture(&present);
    json_open(out, "threads", '[');
    for (size_t i = 0; i < present.count; i++)
        write_thread(out, thread_at(&present, i));
    for (size_t i = 0; i < remembered.count; i++)
        if (!holds(&present, thread_at(&remembered, i)))
            write_thread(out, thread_at(&remembered, i));
    json_close(out, ']');
    json_open(out, "ended", '[');
    for (size_t i = 0; i < ended.count; i++)
        write_thread(out, thread_at(&ended, i));
    json_close(out, ']');
    json_int(out, "started_at_once", atomic_load(&started_most));
}
