"""What every other room may need, and what needs none: errors, paths, files, text for people, units."""
