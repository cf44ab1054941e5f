"""Nodes and links that differ from the others of their class."""
