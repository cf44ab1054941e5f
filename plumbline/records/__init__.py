"""Records: one JSON line per test variant and session, written so that no crash loses a finished launch."""
