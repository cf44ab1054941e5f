"""Searches among all that differs (why) and along commits (bisect)."""
