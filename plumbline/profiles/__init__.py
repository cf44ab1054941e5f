"""Profiles: what the ranks of a launch spent in MPI, as ``libplumbprofile.so`` wrote it.

:mod:`~plumbline.profiles.model` has the types, :mod:`~plumbline.profiles.read` makes a profile of the ranks' files,
:mod:`~plumbline.profiles.sums` adds up, :mod:`~plumbline.profiles.crossed` says over what the messages went,
:mod:`~plumbline.profiles.maps` over what they would go if the ranks sat elsewhere; :mod:`~plumbline.profiles.text`
prints and :mod:`~plumbline.profiles.export` writes what other tools read.
"""

from plumbline.profiles import read

__all__ = ["read"]
