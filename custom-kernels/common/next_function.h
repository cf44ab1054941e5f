/* For a preloaded library: the functions that it stands in front of. */
#ifndef PLUMB_NEXT_FUNCTION_H
#define PLUMB_NEXT_FUNCTION_H

typedef void (*any_function)(void);

/* ISO C has no cast from an object pointer to a function pointer; POSIX says that they look the same. */
any_function as_function(void *object);
/* Where the library that holds `function` is loaded; NULL for NULL. */
const void *object_of(any_function function);
/* The function `name` of another library than the caller's, wherever it is loaded; NULL: none has it.
 *
 * RTLD_NEXT does not see a library that was loaded for one module alone (Python loads extension modules
 * RTLD_LOCAL), and the return address does not name the module when it calls by a jump. But whoever calls a
 * function has its library loaded: every loaded object is asked. */
any_function next_function(const char *name);

#endif
