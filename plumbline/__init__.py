"""Plumbline: a reproducible benchmark campaign with proven placement."""

__version__ = "0.2.0"
