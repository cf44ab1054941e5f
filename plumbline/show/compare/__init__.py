"""Figures of several stacks, systems, campaigns, commits or periods in one table, by records that were not paired."""
