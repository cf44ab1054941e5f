plumb_kernel(pi pi.c)
plumb_kernel(heat1d heat1d.c)
plumb_kernel(rank_ring rank_ring.c rank_nodes.c)
plumb_kernel(rank_map rank_map.c rank_nodes.c rank_grid.c rank_order.c)
# No benchmark: `plumb knobs` runs it.
add_executable(list_settings list_settings.c)
target_link_libraries(list_settings PRIVATE plumb-common MPI::MPI_C)
install(TARGETS list_settings RUNTIME DESTINATION libexec)
