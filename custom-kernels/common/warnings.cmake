# All warnings of the compiler. They are errors in the tests alone: compilers and MPI headers that nobody here has tried
# have warnings of their own, such as gcc 12 at MPI_STATUSES_IGNORE of MPICH 4.0, and a site could install nothing.
option(PLUMB_WARNINGS_AS_ERRORS "Stop at a warning of the compiler" OFF)
add_compile_options(-Wall -Wextra -Wpedantic)
if(PLUMB_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
