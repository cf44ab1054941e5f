/* Every setting of the MPI library, as one JSON document: what MPI_T reports, and the value that each has
 * here. No launcher and no MPI_Init are needed. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "json.h"

#define NAME_BYTES 512
#define TEXT_BYTES 65536 /* longer than any description or text of a library so far */

static struct json out;
static char about[TEXT_BYTES];
static char bytes[TEXT_BYTES];

static void succeed(int status, const char *call) {
    if (status != MPI_SUCCESS)
        fail("%s failed with %d", call, status);
}

/* Writes the value in `bytes` to `text`. Returns the name of its type ("int", "unsigned", ...); NULL for a
 * type that no library has used so far. */
static const char *show(MPI_Datatype type, char *text, size_t length) {
    unsigned long long u;
    memcpy(&u, bytes, sizeof u);
    if (type == MPI_CHAR)
        return snprintf(text, length, "%s", bytes), "text";
    if (type == MPI_C_BOOL)
        return snprintf(text, length, "%d", bytes[0]), "switch";
    if (type == MPI_INT)
        return snprintf(text, length, "%d", *(const int *)(const void *)bytes), "int";
    if (type == MPI_UNSIGNED)
        return snprintf(text, length, "%u", *(const unsigned *)(const void *)bytes), "unsigned";
    if (type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED_LONG_LONG)
        return snprintf(text, length, "%llu", u), "unsigned long";
    if (type == MPI_COUNT || type == MPI_LONG || type == MPI_LONG_LONG)
        return snprintf(text, length, "%lld", (long long)u), "long";
    if (type == MPI_DOUBLE)
        return snprintf(text, length, "%.17g", *(const double *)(const void *)bytes), "double";
    return NULL;
}

static bool read_value(int index) {
    MPI_T_cvar_handle handle;
    int count = 0;
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return false;
    memset(bytes, 0, sizeof bytes);
    bool fits = count >= 0 && (size_t)count < sizeof bytes - 1;
    bool done = fits && MPI_T_cvar_read(handle, bytes) == MPI_SUCCESS;
    MPI_T_cvar_handle_free(&handle);
    return done;
}

static void write_words(MPI_T_enum words) {
    char name[NAME_BYTES];
    int length = sizeof name;
    int items = 0;
    if (words == MPI_T_ENUM_NULL || MPI_T_enum_get_info(words, &items, name, &length) != MPI_SUCCESS)
        return;
    json_open(&out, "words", '{');
    for (int item = 0; item < items; item++) {
        int value;
        char number[16];
        length = sizeof name;
        if (MPI_T_enum_get_item(words, item, &value, name, &length) != MPI_SUCCESS)
            continue;
        snprintf(number, sizeof number, "%d", value);
        json_text(&out, number, name);
    }
    json_close(&out, '}');
}

static void write_setting(int index) {
    static char text[TEXT_BYTES];
    char name[NAME_BYTES];
    int name_length = sizeof name;
    int about_length = sizeof about;
    int verbosity;
    int bind;
    int scope;
    MPI_Datatype type;
    MPI_T_enum words = MPI_T_ENUM_NULL;
    about[0] = '\0';
    /* variables of a component that was not loaded are numbered and cannot be asked for */
    if (MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &type, &words, about, &about_length, &bind,
                            &scope) != MPI_SUCCESS ||
        !read_value(index))
        return;
    const char *kind = show(type, text, sizeof text);
    json_newline(&out);
    json_open(&out, NULL, '{');
    json_text(&out, "name", name);
    json_text(&out, "type", kind == NULL ? "other" : kind);
    json_text(&out, "value", kind == NULL ? "" : text);
    json_bool(&out, "running", scope != MPI_T_SCOPE_CONSTANT && scope != MPI_T_SCOPE_READONLY);
    write_words(words);
    json_text(&out, "about", about);
    json_close(&out, '}');
}

int main(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    int provided;
    int number;
    succeed(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), "MPI_T_init_thread");
    succeed(MPI_Get_library_version(version, &length), "MPI_Get_library_version");
    succeed(MPI_T_cvar_get_num(&number), "MPI_T_cvar_get_num");
    json_start(&out, STDOUT_FILENO);
    json_open(&out, NULL, '{');
    json_text(&out, "library", version);
    json_open(&out, "settings", '[');
    for (int index = 0; index < number; index++)
        write_setting(index);
    json_close(&out, ']');
    json_close(&out, '}');
    if (json_finish(&out) != 0)
        fail("cannot write the list");
    MPI_T_finalize();
    return 0;
}
