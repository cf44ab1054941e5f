"""Nodes and links of a partition as fast as their kind: checks and screenings."""
