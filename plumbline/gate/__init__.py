"""Verdicts on a candidate against a baseline from pairs of launches: GAIN, PASS, FAIL, INCONCLUSIVE or INVALID."""
