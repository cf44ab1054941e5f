"""Every node of a partition, and its links, checked within some days, when idle."""
