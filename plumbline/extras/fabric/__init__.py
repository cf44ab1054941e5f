"""Whether the MPI library of a stack uses what a node has for messages, and why not: ``plumb stack check --run``."""
