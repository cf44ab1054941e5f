"""Launches: one folder of them is a measuring session, here or in a job, which can be resumed."""
