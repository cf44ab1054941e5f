"""The machine and where a plan puts ranks on it. CPU numbers come from the binder alone."""
