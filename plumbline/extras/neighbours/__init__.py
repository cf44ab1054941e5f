"""What a neighbour on the same node costs a program, at each distance between them."""
