"""The witnessed placement and work of the measured processes, compared with the plan; the disturbances of a launch."""
