/* For a preloaded library: the functions that it replaces and calls. */
#ifndef PLUMB_NEXT_FUNCTION_H
#define PLUMB_NEXT_FUNCTION_H

/* A function that is to be found in front of another. */
#define EXPORT __attribute__((visibility("default")))

typedef void (*any_function)(void);

/* The function at `object`. ISO C has no cast from an object pointer to a function pointer; POSIX gives both
 * the same representation. */
any_function as_function(void *object);
/* Base address of the loaded object that holds `function`; NULL for NULL, or if no object holds it. */
const void *object_of(any_function function);
/* The function `name` of another library than the caller's, wherever it is loaded; NULL: none has it.
 *
 * RTLD_NEXT does not see a library that was loaded for one module alone (Python loads extension modules
 * RTLD_LOCAL), and the return address does not name the module when it calls by a jump. But the library of a
 * function that is called is loaded, so every loaded object is searched. */
any_function next_function(const char *name);

#endif
