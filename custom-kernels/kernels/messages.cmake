# Programs of this group: plumb_kernel(NAME SOURCE...)
plumb_kernel(deadlock deadlock.c)

include(${CMAKE_CURRENT_LIST_DIR}/../bind/machine.cmake)
plumb_kernel(pairs pairs.c pairs_class.c pairs_exchange.c pairs_plan.c pairs_show.c)
target_link_libraries(pairs PRIVATE machine)

plumb_kernel(overlap overlap.c overlap_transfer.c overlap_work.c)
plumb_kernel(threaded_pingpong threaded_pingpong.c threaded_messages.c)
plumb_kernel(collective collective.c collective_call.c collective_protocol.c candidates.c common_clock.c clock_offset.c)
plumb_kernel(saturation saturation.c saturation_flows.c rank_nodes.c)
