"""Tests, intervals, change points: what gate, history and outliers decide with. Nothing here knows records or files."""
