"""By what the ranks of a real MPI library reach one another, as their witnesses saw it."""

import os
from pathlib import Path

import pytest
from kernel_stack import KernelStack

from plumbline.records import model
from plumbline.show import diff
from plumbline.show import record as show

#: what makes each library send by TCP between ranks of one host
BY_TCP = {
    "openmpi": {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"},
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"},
    "intelmpi": {"I_MPI_FABRICS": "ofi", "FI_TCP_IFACE": "lo"},
}

pytestmark = pytest.mark.e2e


def record(stack: KernelStack, folder: Path, **variables: str) -> model.Record:
    asked = {"arguments": ["--mode", "ring", "--repetitions", "3", "--json"], "ranks_per_node": 2}
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        found = stack.record(folder, patch, "deadlock", **asked, environment=variables, time_limit_s=60)
    assert found["verified"], found["reasons"]
    return model.convert(found)


def test_a_detour_by_tcp_is_seen_and_compared(each_stack, tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two cores are needed")
    family = each_stack.manifest.mpi.family
    direct = record(each_stack, tmp_path / "direct")
    detour = record(each_stack, tmp_path / "detour", **BY_TCP[family])
    assert "shm" in direct.transports
    assert "tcp" not in direct.transports
    assert "tcp" in detour.transports
    assert f"transports {', '.join(detour.transports)}" in show.text(detour)
    compared = {key: (one, other) for key, one, other in diff.differences(direct, detour)}
    assert compared["transports"] == (", ".join(direct.transports), ", ".join(detour.transports))


def test_one_rank_needs_no_transport(one_stack, tmp_path, monkeypatch):
    found = one_stack.record(tmp_path, monkeypatch, "pi", arguments=["--json"])
    assert found["verified"], found["reasons"]
    assert "transports" not in found["launches"][0]
