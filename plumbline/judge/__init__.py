"""What is said of figures: judging them, and saying it in one form. Nothing is measured or shown here."""
