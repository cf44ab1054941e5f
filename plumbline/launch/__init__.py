"""One launch of a variant on the nodes of its job: prepared, started, observed, proven, parsed."""
