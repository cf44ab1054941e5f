"""Which of the pinned libraries give the CPU away while they wait, counted on this host."""

import os

import pytest

from plumbline.extras.fabric import doctor

#: MPICH from 5.0 on
YIELDING = {"mpich": True, "openmpi": False, "intelmpi": False}


def test_only_mpich_yields_at_every_empty_poll(each_stack):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two ranks want two CPUs")
    if each_stack.manifest.provider != "wheel":
        pytest.skip("how this library was built is not known")
    found = doctor.measure_yields(each_stack.manifest)
    assert (found.calls >= 1) == YIELDING[each_stack.manifest.mpi.family], found
    assert found.time_us > 0
    assert (found.kept_us is not None) == (found.calls > 0)
