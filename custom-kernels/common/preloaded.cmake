# preloaded_library(NAME SOURCE...): what is loaded before a program's own libraries.
function(preloaded_library name)
  add_library(${name} SHARED ${ARGN})
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE PRELOAD_LIBRARY="${name}")
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  # Initial-exec: a thread's variables must not allocate, because they are read inside free(); and a call costs a few
  # nanoseconds, of which a function to find them would be half.
  target_compile_options(${name} PRIVATE -fvisibility=hidden -ftls-model=initial-exec)
  # Bound at load time (-z now): the first call of a hook must not enter the dynamic linker.
  target_link_options(${name} PRIVATE -Wl,-z,now -Wl,-z,defs)
  target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES C_STANDARD 17 C_STANDARD_REQUIRED ON)
  install(TARGETS ${name} LIBRARY DESTINATION lib)
endfunction()
