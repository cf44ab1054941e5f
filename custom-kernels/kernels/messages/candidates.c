#include "candidates.h"

#include "fail_together.h"
#include "first_touch.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 512, MOST = 64 };

struct candidates {
    MPI_T_cvar_handle handle;
    int count, value[MOST];
    MPI_Comm all[MOST];
    char setting[NAME_BYTES];
};

/* Index of the control variable `setting`; -1 if there is none, or none of type MPI_INT. Not every library
 * has MPI_T_cvar_get_index. */
static int number_of(const char *setting) {
    int count = 0;
    MPI_T_cvar_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[NAME_BYTES];
        int length = sizeof name, no_text = 0, verbosity, bind, scope;
        MPI_Datatype type;
        MPI_T_enum words;
        if (MPI_T_cvar_get_info(index, name, &length, &verbosity, &type, &words, NULL, &no_text, &bind,
                                &scope) == MPI_SUCCESS &&
            strcmp(name, setting) == 0)
            return type == MPI_INT ? index : -1;
    }
    return -1;
}

static void read_values(struct candidates *candidates, const char *text) {
    while (*text != '\0') {
        char *end;
        if (candidates->count == MOST)
            fail_together("--race: more than %d values", MOST - 1);
        candidates->value[candidates->count++] = (int)strtol(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0') || (*end == ',' && end[1] == '\0'))
            fail_together("--race: '%s' is no list of whole numbers", text);
        text = end + (*end == ',');
    }
}

struct candidates *candidates_new(const char *text) {
    struct candidates *candidates = allocate(1, sizeof *candidates);
    *candidates = (struct candidates){.count = 1, .all = {MPI_COMM_WORLD}};
    if (text == NULL)
        return candidates;
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals[1] == '\0' || (size_t)(equals - text) >= sizeof candidates->setting)
        fail_together("--race: '%s' is not NAME=VALUE,VALUE", text);
    memcpy(candidates->setting, text, (size_t)(equals - text));
    read_values(candidates, equals + 1);
    int provided, size = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    int index = number_of(candidates->setting);
    if (index < 0 || MPI_T_cvar_handle_alloc(index, NULL, &candidates->handle, &size) != MPI_SUCCESS ||
        size != 1 || MPI_T_cvar_read(candidates->handle, &candidates->value[0]) != MPI_SUCCESS)
        fail_together("--race: the MPI library has no whole number %s", candidates->setting);
    for (int which = 0; which < candidates->count; which++) {
        candidates_take(candidates, which);
        MPI_Comm_dup(MPI_COMM_WORLD, &candidates->all[which]);
    }
    return candidates;
}

int candidates_count(const struct candidates *candidates) {
    return candidates->count;
}

int candidates_value(const struct candidates *candidates, int which) {
    return candidates->value[which];
}

const char *candidates_setting(const struct candidates *candidates) {
    return candidates->setting;
}

MPI_Comm candidates_take(const struct candidates *candidates, int which) {
    if (candidates->setting[0] == '\0')
        return MPI_COMM_WORLD;
    int wanted = candidates->value[which], found = 0;
    if (MPI_T_cvar_write(candidates->handle, &wanted) != MPI_SUCCESS ||
        MPI_T_cvar_read(candidates->handle, &found) != MPI_SUCCESS || found != wanted)
        fail_together("--race: the MPI library does not take %s=%d while it runs", candidates->setting,
                      wanted);
    return candidates->all[which];
}

void candidates_free(struct candidates *candidates) {
    if (candidates->setting[0] != '\0') {
        candidates_take(candidates, 0);
        for (int which = 0; which < candidates->count; which++)
            MPI_Comm_free(&candidates->all[which]);
        MPI_T_cvar_handle_free(&candidates->handle);
        MPI_T_finalize();
    }
    free(candidates);
}
