"""Profiles: what the ranks of a launch spent in MPI, as ``libplumbprofile.so`` wrote it."""
