/* The program and the shared libraries that this process has loaded: path, build id, size and time of each
 * file.
 *
 * The build id comes from the mapped note, so it is that of what was loaded; size and time are the file's
 * now. */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#include "witness.h"

#define LONGEST_ID 64

struct walk {
    struct json *out;
    const char *program;
};

/* The build id among the notes of one segment, in hexadecimal digits; leaves `id` as it is without one. */
static void find_id(const char *notes, size_t bytes, char *id) {
    static const char digits[] = "0123456789abcdef";
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof note);
        size_t name = (note.n_namesz + 3U) & ~3U;
        size_t whole = sizeof note + name + ((note.n_descsz + 3U) & ~3U);
        if (whole > bytes)
            return;
        const char *value = notes + sizeof note + name;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= LONGEST_ID) {
            for (size_t i = 0; i < note.n_descsz; i++) {
                id[2 * i] = digits[(unsigned char)value[i] >> 4];
                id[2 * i + 1] = digits[(unsigned char)value[i] & 15];
            }
            id[2 * note.n_descsz] = '\0';
        }
        notes += whole;
        bytes -= whole;
    }
}

static int write_object(struct dl_phdr_info *object, size_t size, void *context) {
    struct walk *walk = context;
    char id[2 * LONGEST_ID + 1] = "";
    struct stat status;
    (void)size;
    const char *path = object->dlpi_name;
    if (walk->program != NULL) { /* the first one, which has no name */
        path = walk->program;
        walk->program = NULL;
    }
    if (path == NULL || path[0] != '/' || stat(path, &status) != 0)
        return 0; /* the kernel's vdso is not a file */
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE)
            find_id((const char *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
                    object->dlpi_phdr[i].p_memsz, id);
    json_open(walk->out, NULL, '{');
    json_text(walk->out, "path", path);
    json_text(walk->out, "build_id", id);
    json_int(walk->out, "bytes", (long long)status.st_size);
    json_int(walk->out, "modified_ns", status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec);
    json_close(walk->out, '}');
    return 0;
}

void objects_write(struct json *out, const char *program) {
    struct walk walk = {out, program};
    json_open(out, "objects", '[');
    dl_iterate_phdr(write_object, &walk);
    json_close(out, ']');
}
