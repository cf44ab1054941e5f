"""Expected values: reading, matching, judging, calibrating and checking them."""

from plumbline.judge.references.match import Match, References, judge

__all__ = ["Match", "References", "judge"]
