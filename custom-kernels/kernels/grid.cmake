# Programs of this group: plumb_kernel(NAME SOURCE...)
plumb_kernel(jacobi jacobi.c jacobi_case.c jacobi_field.c jacobi_grid.c jacobi_halo.c jacobi_limits.c
             jacobi_modes.c jacobi_serial.c jacobi_split.c jacobi_sweep.c)
plumb_kernel(jacobi_temporal jacobi_temporal.c jacobi_case.c jacobi_field.c jacobi_grid.c jacobi_halo.c
             jacobi_limits.c jacobi_modes.c jacobi_pipeline.c jacobi_serial.c jacobi_split.c jacobi_sweep.c)
