"""A second opinion: what mpiP counts of the same programs, rank by rank and call by call.

``PLUMB_TEST_MPIP`` names files of mpiP (``libmpiP.so``), separated by colons, each built for one MPI library; else that
of Spack's environment ``tools`` is taken, where it was installed. A stack without one is skipped (docs/profiles.md).
"""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from kernel_stack import KernelStack
from processes import succeeded

from plumbline.base import paths
from plumbline.extras.spack import environments
from plumbline.launch import profile_files
from plumbline.launch.profiles import RankProfile

#: calls whose size mpiP does not say: what is received, and the collective calls with a list of counts
WITHOUT_SIZE = {"Recv", "Irecv", "Alltoallv"}
#: calls that are not part of mpiP's report
NOT_REPORTED = {"Comm_rank", "Comm_size", "Comm_split_type"}
#: (benchmark of a stack, its arguments): how often each call is made does not depend on time
PROGRAMS = [
    ("jacobi", ("--size", "16", "--sweeps", "4", "--repetitions", "1", "--mode", "pure")),
    *(
        ("imb-mpi1", (name, "-iter", "20", "-iter_policy", "off", "-msglog", "4:12"))
        for name in ("PingPong", "Exchange", "Alltoallv")
    ),
]

#: by rank and call: how often, and how many bytes
Counts = dict[tuple[int, str], tuple[int, int]]


def counts_of_mpip(report: str) -> Counts:
    """The sums of all callsites; ``report`` was printed with ``-e``, so that no number is rounded to three digits."""
    parts = re.split(r"^@--- (.*?) -*$", report, flags=re.MULTILINE)
    counts, sizes = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        rows = [line.split() for line in body.splitlines()]
        for row in (row for row in rows if len(row) > 3 and row[2].isdigit()):  # '*': all ranks
            if title.startswith("Callsite Time statistics"):
                counts[int(row[2]), row[0]] += int(row[3])
            elif title.startswith("Callsite Message Sent statistics"):
                sizes[int(row[2]), row[0]] += round(float(row[7]))
    return {key: (counts[key], sizes[key]) for key in counts}


def counts_of_ours(ranks: list[RankProfile]) -> Counts:
    """Without the calls and sizes that mpiP does not report."""
    counts, sizes = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for rank in ranks:
        for call in (call for one in rank.communicators for call in one.calls if call.call not in NOT_REPORTED):
            counts[rank.rank, call.call] += sum(size.count for size in call.sizes)
            sizes[rank.rank, call.call] += sum(size.bytes for size in call.sizes)
    return {key: (counts[key], 0 if key[1] in WITHOUT_SIZE else sizes[key]) for key in counts}


def library_for(stack: KernelStack) -> Path:
    """The mpiP that was built for the library of ``stack``."""
    named = os.environ.get("PLUMB_TEST_MPIP", "")
    found = (
        [Path(name) for name in named.split(":")]
        if named
        else sorted(environments.home().glob("store/**/mpip-*/lib/libmpiP.so"))
    )
    family = stack.manifest.family
    for file in found:
        if f"{family.libraries[0]}\0".encode() in file.read_bytes():  # the name of a library that it needs
            return file
    pytest.skip(f"not run: no mpiP for {stack.name}: neither PLUMB_TEST_MPIP nor Spack's environment tools has one")


@pytest.mark.parametrize(("benchmark", "arguments"), PROGRAMS, ids=["jacobi", "PingPong", "Exchange", "Alltoallv"])
def test_mpip_counts_the_same(each_stack, tmp_path, benchmark, arguments):
    """Each in a run of its own, because both stand in the same place in front of the library."""
    library = library_for(each_stack)
    if benchmark not in each_stack.manifest.benchmarks:
        pytest.skip(f"{each_stack.name} has no {benchmark}")
    program = each_stack.manifest.benchmarks[benchmark].command
    for name in ("mpip", "ours"):
        (tmp_path / name).mkdir()
    preload = [shutil.which("env") or "/usr/bin/env", f"MPIP=-e,-f,{tmp_path / 'mpip'}", f"LD_PRELOAD={library}"]
    binder = [str(paths.binder()), "--placement", "none", "--profile", str(tmp_path / "ours"), "--"]
    for start in (preload, binder):
        succeeded(each_stack.mpirun(2, *start, *program, *arguments))
    (report,) = (tmp_path / "mpip").glob("*.mpiP")
    ranks, faults = profile_files.ranks(tmp_path / "ours")
    assert faults == []
    theirs = counts_of_mpip(report.read_text(encoding="utf-8"))
    assert len(theirs) >= 8
    assert counts_of_ours(ranks) == theirs
