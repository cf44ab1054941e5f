"""Verdicts on figures, and one form to state them. Nothing is measured or shown here."""
