"""Too little room in /dev/shm: MPI libraries are slower then, or fail, and nobody sees it in the figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import stack_manifest
from odd_stack import Bench, bench, results  # noqa: F401
from samples import record

from plumbline import mpi
from plumbline.host import provenance
from plumbline.launch import process
from plumbline.measure import driver
from plumbline.records import store
from plumbline.records.model import convert
from plumbline.show import diff
from plumbline.stacks import manifest

PLUMB = str(Path(sys.executable).parent / "plumb")
#: runs a command in a place of its own where /dev/shm has so many bytes
SMALL = 'mount -t tmpfs -o size="$0" none /dev/shm && exec "$@"'
APART = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]


def latency(bench, base, **changes):  # noqa: F811
    """A variant: latency of two ranks, by a kernel of an installed stack."""
    document = json.loads((bench.folder / "installed" / base / manifest.FILE).read_text())
    document["benchmarks"] = {"pairs": document["benchmarks"]["pairs"]}
    (bench.folder / "stacks" / base).mkdir(parents=True, exist_ok=True)
    stack_manifest.save(document)
    kernel = {
        "arguments": ["--json", "--bandwidth-bytes", "8", "--latency-trips", "50"],
        "parser": "kernel",
        "context": {"kernel": "pairs"},
    }
    wanted = [{"name": "latency", "metric": "latency", "where": {}}]
    several = {"placement": "core", "ranks_per_node": 2}
    return bench.variant(stack=base, benchmark="pairs", figures=wanted, **kernel, **several, **changes)


def launched(bench, variant, size):  # noqa: F811
    """The record of a variant where /dev/shm has ``size``."""
    file = bench.folder / "variant.json"
    file.write_bytes(msgspec.json.encode(variant))
    command = [*APART, "sh", "-c", SMALL, size, PLUMB, "launch", str(file), "--work", str(bench.folder / "small")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    if "launch 1/1" not in done.stdout:
        pytest.skip(f"not run: no mount of one's own here: {done.stderr[-200:]}")
    (found,) = store.read(Path(done.stdout.strip().splitlines()[-1].removeprefix("records: ")))
    return found


@pytest.mark.e2e
def test_open_mpi_in_64_kib_is_invalid_and_not_equal(bench):  # noqa: F811
    """It goes on over a slower transport, verified rank by rank: only its own report says so."""
    variant = latency(bench, "openmpi")
    _, (normal,) = driver.run([variant], bench.folder / "work")
    assert normal.reasons == []
    small = launched(bench, variant, "64k")
    (reason,) = small.reasons
    assert reason.startswith("launch 0: openmpi reports: It appears as if there is not enough space")
    assert (small.verdict, small.figures) == ("invalid", [])
    assert small.launches[0].shm_free_bytes == 64 << 10
    assert small.launches[0].disturbance.causes[-1].startswith("/dev/shm has 64 KiB free, 2 ranks of openmpi want")
    assert ("host.shm_bytes", str(normal.host["shm_bytes"]), str(64 << 10)) in diff.differences(normal, small)


@pytest.mark.e2e
def test_mpich_in_8_mib_is_disturbed(bench):  # noqa: F811
    small = launched(bench, latency(bench, "mpich"), "8m")
    (cause,) = [line for line in small.launches[0].disturbance.causes if "/dev/shm" in line]
    assert cause == "/dev/shm has 8192 KiB free, 2 ranks of mpich want 12288 KiB"


@pytest.mark.parametrize("family", mpi.TABLE.values(), ids=lambda family: family.name)
def test_every_family_wants_room_for_each_rank(family):
    assert process.shared_shortage(family, 2, 1 << 34) == []
    assert process.shared_shortage(family, 2, None) == []
    assert len(process.shared_shortage(family, 2, 64 << 10)) == 1
    assert len(process.shared_shortage(family, 1024, 32 << 20)) == 1


def test_a_host_without_such_memory_has_none(tmp_path):
    assert provenance.collect(tmp_path)["shm_bytes"] is None
    assert process.shared_free(tmp_path / "dev" / "shm") is None


def test_locked_memory_cgroup_and_huge_pages_are_circumstances():
    limits = {"cpu_quota": 1.5, "memory_limit_bytes": 1 << 30}
    other = convert(record(host={"memlock_bytes": 1, "thp": "never", "shm_bytes": 1, "cgroup": limits}))
    found = {key for key, _, _ in diff.differences(convert(record()), other)}
    assert {"host.memlock_bytes", "host.thp", "host.shm_bytes", "host.cgroup.cpu_quota"} <= found
