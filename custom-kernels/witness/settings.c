/* The settings of the process's own MPI library that PLUMB_WITNESS_SETTINGS names, as the library has them:
 * read by the tools interface of MPI (MPI_T) when MPI_Finalize is called.
 *
 * There is no mpi.h here: one library serves every ABI. Handles of the tools interface are pointers in all of
 * them; a datatype is a pointer or an int, and is only handed back to the library that gave it. */
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procfile.h"
#include "witness.h"

#define MOST 64
#define NAME_BYTES 128
#define TEXT_BYTES 4096 /* longer than any value or description of a library so far */
#define LIST_BYTES 4096

typedef int (*init_function)(int required, int *provided);
typedef int (*plain_function)(void);
typedef int (*number_function)(int *number);
typedef int (*index_function)(const char *name, int *index);
typedef int (*info_function)(int index, char *name, int *name_length, int *verbosity, uintptr_t *datatype,
                             void **enumeration, char *description, int *description_length, int *bind,
                             int *scope);
typedef int (*allocate_function)(int index, void *object, void **handle, int *count);
typedef int (*release_function)(void **handle);
typedef int (*read_function)(void *handle, void *value);
typedef int (*type_name_function)(uintptr_t datatype, char *name, int *length);
typedef int (*type_size_function)(uintptr_t datatype, int *size);
typedef int (*enum_info_function)(void *enumeration, int *items, char *name, int *length);
typedef int (*enum_item_function)(void *enumeration, int index, int *value, char *name, int *length);

static struct interface {
    init_function init;
    plain_function finalize;
    number_function number;
    index_function index;
    info_function info;
    allocate_function allocate;
    release_function release;
    read_function read;
    type_name_function type_name;
    type_size_function type_size;
    enum_info_function enum_info;
    enum_item_function enum_item;
} mpi;

static struct setting {
    char name[NAME_BYTES];
    char value[TEXT_BYTES];
    char word[NAME_BYTES]; /* for a number that the library has a word for */
    char about[TEXT_BYTES];
} *settings; /* MOST of them */
static size_t found;
static bool was_read;

/* PMPI: a tool that is linked or preloaded counts the calls of the others. */
static bool resolve(void) {
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
        {"PMPI_T_init_thread", &mpi.init},         {"PMPI_T_finalize", &mpi.finalize},
        {"PMPI_T_cvar_get_num", &mpi.number},      {"PMPI_T_cvar_get_index", &mpi.index},
        {"PMPI_T_cvar_get_info", &mpi.info},       {"PMPI_T_cvar_handle_alloc", &mpi.allocate},
        {"PMPI_T_cvar_handle_free", &mpi.release}, {"PMPI_T_cvar_read", &mpi.read},
        {"PMPI_Type_get_name", &mpi.type_name},    {"PMPI_Type_size", &mpi.type_size},
        {"PMPI_T_enum_get_info", &mpi.enum_info},  {"PMPI_T_enum_get_item", &mpi.enum_item},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        any_function function = next_function(wanted[i].name);
        if (function == NULL)
            return false;
        memcpy(wanted[i].slot, &function, sizeof function);
    }
    return true;
}

/* The datatype of a variable, its words for numbers (or NULL), and its description. */
static bool describe(int index, uintptr_t *datatype, void **enumeration, char *about) {
    char name[NAME_BYTES];
    int name_length = sizeof name;
    int about_length = TEXT_BYTES;
    int verbosity;
    int bind;
    int scope;
    *datatype = 0;
    *enumeration = NULL;
    about[0] = '\0';
    return mpi.info(index, name, &name_length, &verbosity, datatype, enumeration, about, &about_length, &bind,
                    &scope) == 0;
}

/* Intel MPI's variables have other names in the environment, which their descriptions tell: "@Alias:# NAME".
 */
static bool has_alias(const char *about, const char *name) {
    static const char mark[] = "@Alias:# ";
    const char *at = strstr(about, mark);
    size_t length = strlen(name);
    return at != NULL && strncmp(at + sizeof mark - 1, name, length) == 0 &&
           strchr(" \n\r\t", at[sizeof mark - 1 + length]) != NULL;
}

static int find_alias(const char *name, char *about) {
    int number = 0;
    uintptr_t datatype;
    void *enumeration;
    if (mpi.number(&number) != 0)
        return -1;
    for (int index = 0; index < number; index++)
        if (describe(index, &datatype, &enumeration, about) && has_alias(about, name))
            return index;
    return -1;
}

/* The value as text: booleans and whole numbers as numbers. */
static void show(uintptr_t datatype, const void *bytes, char *text) {
    char type[NAME_BYTES] = "";
    int length = 0;
    int size = 0;
    long long number = 0;
    mpi.type_name(datatype, type, &length);
    mpi.type_size(datatype, &size);
    if (strcmp(type, "MPI_CHAR") == 0) {
        snprintf(text, TEXT_BYTES, "%s", (const char *)bytes);
        return;
    }
    if (strcmp(type, "MPI_DOUBLE") == 0) {
        double value;
        memcpy(&value, bytes, sizeof value);
        locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* no decimal comma */
        snprintf(text, TEXT_BYTES, "%.17g", value);
        uselocale(before);
        return;
    }
    bool is_signed = strstr(type, "UNSIGNED") == NULL && strstr(type, "BOOL") == NULL;
    if (size == 4 && is_signed) {
        int32_t value;
        memcpy(&value, bytes, sizeof value);
        number = value;
    } else if (size > 0 && (size_t)size <= sizeof number) {
        memcpy(&number, bytes, (size_t)size); /* the low bytes come first */
    }
    snprintf(text, TEXT_BYTES, "%lld", number);
}

static void find_word(void *enumeration, struct setting *setting) {
    char name[NAME_BYTES];
    int length = sizeof name;
    int items = 0;
    if (enumeration == NULL || mpi.enum_info(enumeration, &items, name, &length) != 0)
        return;
    for (int item = 0; item < items; item++) {
        int value;
        length = sizeof name;
        if (mpi.enum_item(enumeration, item, &value, name, &length) == 0 && value == atol(setting->value))
            memcpy(setting->word, name, sizeof name);
    }
}

/* MPICH returns the values of text settings as empty. The value of one that names a file is known if that
 * file is mapped in this process: the library reads its files of choices by mmap, and does not unmap them. */
static void find_mapped(const char *name, char *text) {
    static struct line_reader reader;
    static char file[PATH_MAX];
    const char *asked = getenv(name);
    if (text[0] != '\0' || asked == NULL || asked[0] != '/' || strlen(asked) >= TEXT_BYTES ||
        realpath(asked, file) == NULL || !lines_open(&reader, "/proc/self/maps"))
        return;
    const char *line;
    while ((line = lines_next(&reader)) != NULL) {
        const char *path = strchr(line, '/');
        if (path != NULL && strcmp(path, file) == 0)
            snprintf(text, TEXT_BYTES, "%s", asked);
    }
    lines_close(&reader);
}

static void read_setting(const char *name) {
    static char bytes[TEXT_BYTES * sizeof(long long)];
    struct setting *setting = &settings[found];
    void *handle = NULL;
    int count = 0;
    int index = -1;
    uintptr_t datatype;
    void *enumeration;
    if (mpi.index(name, &index) != 0)
        index = find_alias(name, setting->about);
    if (index < 0 || !describe(index, &datatype, &enumeration, setting->about) ||
        mpi.allocate(index, NULL, &handle, &count) != 0)
        return;
    memset(bytes, 0, sizeof bytes);
    if ((size_t)count < TEXT_BYTES && mpi.read(handle, bytes) == 0) {
        snprintf(setting->name, sizeof setting->name, "%s", name);
        show(datatype, bytes, setting->value);
        find_mapped(name, setting->value);
        find_word(enumeration, setting);
        found++;
    }
    mpi.release(&handle);
}

void settings_read(void) {
    static char list[LIST_BYTES];
    const char *names = getenv("PLUMB_WITNESS_SETTINGS");
    int provided;
    if (names == NULL || names[0] == '\0' || strlen(names) >= sizeof list || !resolve())
        return;
    found = 0;
    settings = preload_room(MOST * sizeof *settings);
    if (settings == NULL || mpi.init(0 /* MPI_THREAD_SINGLE, the lowest */, &provided) != 0)
        return;
    memcpy(list, names, strlen(names) + 1);
    char *rest = list;
    for (char *name = strtok_r(list, ",", &rest); name != NULL && found < MOST;
         name = strtok_r(NULL, ",", &rest))
        read_setting(name);
    mpi.finalize();
    was_read = true;
}

void settings_write(struct json *out) {
    if (!was_read)
        return;
    json_open(out, "settings", '[');
    for (size_t i = 0; i < found; i++) {
        json_open(out, NULL, '{');
        json_text(out, "name", settings[i].name);
        json_text(out, "value", settings[i].value);
        if (settings[i].word[0] != '\0')
            json_text(out, "word", settings[i].word);
        json_text(out, "about", settings[i].about);
        json_close(out, '}');
    }
    json_close(out, ']');
}
