"""The tuner of MPI libraries: what is worth a change (screen), what wins (race), what is proven (confirm)."""
