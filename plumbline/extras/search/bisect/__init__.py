"""Which commit changed a figure: git chooses the commits, a gate judges each, with a known error."""
