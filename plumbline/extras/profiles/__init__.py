"""Profiles for people: tables, rank maps, differences, a section of the report."""
