"""Every node of a partition, and its links, checked within some days, when idle: what is due, what it shows."""
