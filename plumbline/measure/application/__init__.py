"""Programs of other people: their ``plumb.yaml``, the states of their code, and how these are built."""
