"""The nodes of a partition: their facts by one job, their states, and which of them differ."""
