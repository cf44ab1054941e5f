"""The tuner of MPI libraries: the screen finds suspects, the race winners, the confirmation proofs."""
