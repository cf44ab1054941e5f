# The machine as plumb-bind sees it, and how far two CPUs are apart: also linked into kernels that name distances.
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.3)

add_library(machine STATIC
  ${CMAKE_CURRENT_LIST_DIR}/cputable.c ${CMAKE_CURRENT_LIST_DIR}/distance.c ${CMAKE_CURRENT_LIST_DIR}/machine.c
  ${CMAKE_CURRENT_LIST_DIR}/numbers.c)
target_include_directories(machine PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(machine PUBLIC plumb-common PkgConfig::HWLOC)
