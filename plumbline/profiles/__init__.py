"""Profiles: what the ranks of a launch spent in MPI, as ``libplumbprofile.so`` wrote it.

:mod:`~plumbline.profiles.model` has the types, :mod:`~plumbline.profiles.read` makes a profile of the ranks' files,
:mod:`~plumbline.profiles.sums` adds up, also by what the messages crossed, :mod:`~plumbline.profiles.maps` says what
they would cross if the ranks were placed elsewhere;
:mod:`~plumbline.profiles.text` prints, :mod:`~plumbline.profiles.difference` compares two profiles, and
:mod:`~plumbline.profiles.export` writes what other tools read.
"""

from plumbline.profiles import read

__all__ = ["read"]
