"""Programs of other people: what ``plumb.yaml`` says of them, the states of their code, and how these are built."""
