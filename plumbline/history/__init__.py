"""Change points of series of figures: what became slower or faster, and when."""
