/* A library with MPI_T: variable 0 is a number, 1 a switch with words, 2 a text with an alias, 3 a fraction.
 */
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static const char *names[] = {"limit", "switch", "text", "seconds"};
static const char *abouts[] = {"bytes", "on or off", "choice @Alias:# I_TEXT_LONG", "of patience"};
static const char *types[] = {"MPI_UNSIGNED_LONG", "MPI_C_BOOL", "MPI_CHAR", "MPI_DOUBLE"};
int snprintf(char *text, size_t room, const char *format,
             ...) { /* of a program whose locale has a decimal comma */
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, room, format, arguments);
    va_end(arguments);
    if (strstr(format, "17g") != NULL && uselocale((locale_t)0) == LC_GLOBAL_LOCALE)
        *strchr(text, '.') = ',';
    return length;
}
int PMPI_Initialized(int *flag) {
    *flag = 1;
    return 0;
}
int MPI_Finalize(void) {
    return 0;
}
int PMPI_T_init_thread(int required, int *provided) {
    *provided = required;
    return 0;
}
int PMPI_T_finalize(void) {
    return 0;
}
int PMPI_T_cvar_get_num(int *number) {
    *number = 4;
    return 0;
}
int PMPI_T_cvar_get_index(const char *name, int *index) {
    for (*index = 0; *index < 4; ++*index)
        if (strcmp(name, names[*index]) == 0)
            return 0;
    return 1;
}
int PMPI_T_cvar_get_info(int index, char *name, int *nl, int *v, long *type, void **words, char *about,
                         int *al, int *b, int *s) {
    (void)nl, (void)al;
    strcpy(name, names[index]), strcpy(about, abouts[index]);
    *type = index, *words = index == 1 ? &names : NULL, *v = *b = *s = 0;
    return 0;
}
int PMPI_T_cvar_handle_alloc(int index, void *object, void **handle, int *count) {
    (void)object;
    *handle = &names[index], *count = index == 2 ? 384 : 1;
    return 0;
}
int PMPI_T_cvar_handle_free(void **handle) {
    *handle = NULL;
    return 0;
}
int PMPI_T_cvar_read(void *handle, void *value) {
    unsigned long limit = 5000000000;
    double seconds = 0.5;
    if (handle == &names[0])
        memcpy(value, &limit, sizeof limit);
    if (handle == &names[3])
        memcpy(value, &seconds, sizeof seconds);
    if (handle == &names[1])
        *(char *)value = 1;
    if (handle == &names[2])
        strcpy(value, "a \"word\"");
    return 0;
}
int PMPI_Type_get_name(long type, char *name, int *length) {
    (void)length;
    strcpy(name, types[type]);
    return 0;
}
int PMPI_Type_size(long type, int *size) {
    *size = type == 0 ? 8 : 1;
    return 0;
}
int PMPI_T_enum_get_info(void *words, int *items, char *name, int *length) {
    (void)words, (void)length;
    *items = 1, strcpy(name, "switches");
    return 0;
}
int PMPI_T_enum_get_item(void *words, int item, int *value, char *name, int *length) {
    (void)words, (void)item, (void)length;
    *value = 1, strcpy(name, "on");
    return 0;
}
int MPI_Type_size(long type, int *size) {
    write(2, "counted", 7);
    return PMPI_Type_size(type, size);
} /* a tool's */
