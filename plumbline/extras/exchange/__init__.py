"""Figures for other programs, and figures of other programs."""
