#include "environment.h"

#include "fail.h"
#include "numbers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void export(const char *name, const char *value) {
    if (setenv(name, value, 1) != 0)
        fail("%s cannot be exported: %s", name, strerror(errno));
}

static void export_number(const char *name, unsigned long value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%lu", value);
    export(name, digits);
}

static void export_places(const struct plan *plan, unsigned rank) {
    char *list;
    size_t size;
    FILE *file = open_memstream(&list, &size);
    if (!file)
        fail("out of memory");
    for (unsigned thread = 0; thread < plan->layout.threads; thread++)
        fprintf(file, "%s{%u}", thread ? "," : "", plan->rank[rank].place[thread]);
    fclose(file);
    export("OMP_PLACES", list);
    free(list);
}

static void export_json(const struct plan *plan, unsigned rank) {
    struct json out;
    json_start_string(&out);
    write_rank(&out, plan, rank);
    char *json = json_string(&out);
    if (!json)
        fail("out of memory");
    export("PLUMB_PLAN", json);
    free(json);
}

/* Anything here would move threads away from their places or change their number. */
static void remove_competitors(void) {
    static const char *const names[] = {
        "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_HW_SUBSET",    "KMP_PLACE_THREADS", "KMP_TOPOLOGY_METHOD",
        "MP_BIND",           "MP_BLIST",     "SUNW_MP_PROCBIND", "OMP_DYNAMIC",       "OMP_THREAD_LIMIT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

/* Is the list 0,1,2, … up to the last of `count` devices? */
static bool has_all(const char *list, unsigned count) {
    for (unsigned i = 0, number; i < count; i++)
        if ((i && !take_character(&list, ',')) || !take_number(&list, &number) || number != i)
            return false;
    return !*list;
}

/* How many GPUs list number `list` can name: those of its maker or, where this host has none of them, those
 * of the maker of the rank's GPU, because AMD's runtime reads CUDA_VISIBLE_DEVICES too. */
static unsigned most_listed(int list, const struct device *device) {
    unsigned own = device->gpus[device_list_maker[list]];
    return own ? own : device->gpus[device->maker - gpu_makers];
}

/* Fail if the job was given only some GPUs of the host: the plan numbers all of them, but such a job's
 * variables number only its own. */
static void must_have_all(const struct plan *plan, const struct device *device) {
    for (int i = 0; i < DEVICE_LISTS; i++) {
        const char *given = getenv(device_variables[i]);
        unsigned most = most_listed(i, device);
        if (given && !has_all(given, most))
            fail("placement %s: %s is '%s' already, not all of this host's %u GPUs: ask for whole nodes",
                 plan->placement->name, device_variables[i], given, most);
    }
}

static void export_device(const struct plan *plan, const struct device *device) {
    must_have_all(plan, device);
    for (const char *const *name = device_variables; *name; name++)
        unsetenv(*name);
    if (device->maker->order)
        export(device->maker->order, device->maker->by_address);
    export_number(device->maker->visible, device->number);
}

void export_plan(const struct plan *plan, unsigned rank) {
    const struct device *device = plan->rank[rank].device;
    if (device && device->maker)
        export_device(plan, device);
    export_number("OMP_NUM_THREADS", plan->layout.threads);
    export_json(plan, rank);
    if (!plan->rank[rank].place)
        return;
    remove_competitors();
    export_places(plan, rank);
    export("OMP_PROC_BIND", "close");
}

static void library_beside_this_program(char *path, size_t size, const char *name) {
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0)
        fail("/proc/self/exe: %s", strerror(errno));
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    char *bin = strrchr(own, '/');
    if (bin)
        *bin = '\0';
    if (snprintf(path, size, "%s/lib/libplumb%s.so", own, name) >= (int)size)
        fail("the path of the %s library is too long", name);
}

static void find_library(char *path, size_t size, const char *name, const char *given) {
    if (!given || !*given)
        library_beside_this_program(path, size, name);
    else if (snprintf(path, size, "%s", given) >= (int)size)
        fail("PLUMB_WITNESS_LIB is too long");
    if (access(path, R_OK) != 0)
        fail("%s library %s: %s", name, path, strerror(errno));
    if (strpbrk(path, " :"))
        fail("%s library %s: the dynamic linker cannot preload from a path with a blank or a colon", name,
             path);
}

static void preload(const char *library) {
    const char *before = getenv("LD_PRELOAD");
    char *list = before && *before ? text("%s:%s", library, before) : text("%s", library);
    export("LD_PRELOAD", list);
    free(list);
}

/* Preload the library `given`, or else the one beside this program; it writes to `folder`. `variable` gets an
 * absolute path, because the program may change its working directory. */
static void export_library(const char *name, const char *given, const char *variable, const char *folder) {
    char library[PATH_MAX];
    struct stat status;
    if (stat(folder, &status) != 0)
        fail("%s folder %s: %s", name, folder, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        fail("%s folder %s: not a folder", name, folder);
    if (access(folder, W_OK | X_OK) != 0)
        fail("%s folder %s: %s", name, folder, strerror(errno));
    char *absolute = realpath(folder, NULL);
    if (!absolute)
        fail("%s folder %s: %s", name, folder, strerror(errno));
    find_library(library, sizeof library, name, given);
    export(variable, *folder == '/' ? folder : absolute);
    preload(library);
    free(absolute);
}

void export_profile(const char *folder) {
    export_library("profile", NULL, "PLUMB_PROFILE_DIR", folder);
}

void export_witness(const char *folder) {
    export_library("witness", getenv("PLUMB_WITNESS_LIB"), "PLUMB_WITNESS_DIR", folder);
    export_number("PLUMB_WITNESS_PID", (unsigned long)getpid());
}

void export_own_time(void) {
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_SELF, &usage);
    unsigned long seconds = (unsigned long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
    export_number("PLUMB_BINDER_CPU_US",
                  seconds * 1000000 + (unsigned long)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
}
