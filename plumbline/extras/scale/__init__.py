"""Scaling of a command over threads or ranks: the curve with proof of place, its intervals, and why it bends."""
