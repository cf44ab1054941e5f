"""Which change makes B slower than A: the effect of each circumstance that differs, measured, with known error."""
