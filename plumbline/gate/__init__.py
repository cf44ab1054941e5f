"""Verdicts on a candidate against a baseline from pairs of launches: PASS, FAIL, INCONCLUSIVE or INVALID."""
