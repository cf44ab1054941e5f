"""Acceptance tests: a contract's clauses, judged on every node and link of a machine."""
