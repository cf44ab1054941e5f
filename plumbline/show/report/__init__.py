"""The report: one campaign and the history as a single HTML file that needs no network."""
