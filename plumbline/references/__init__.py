"""Expected values: reading, matching, judging, calibrating and checking them."""

from plumbline.references.match import Match, References, judge

__all__ = ["Match", "References", "judge"]
