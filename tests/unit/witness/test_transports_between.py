"""What connects the ranks of a launch, from what each of them had open."""

from __future__ import annotations

from typing import Any

from witnesses import of_documents

from plumbline.witness.model import transports_between

between = of_documents(transports_between)


def rank(**seen: Any) -> dict[str, Any]:
    nothing = {"shm_bytes": 0, "sysv_bytes": 0, "file_bytes": 0, "file": "", "copies": 0, "connections": 0, "tcp": []}
    return {"transports": {**nothing, "devices": [], **seen}}


def test_a_connection_counts_if_two_ranks_have_its_ends():
    launcher = ["10.0.0.1:40000", "10.0.0.1:9999"]
    one, other = ["10.0.0.1:500", "10.0.0.2:600"], ["10.0.0.2:600", "10.0.0.1:500"]
    assert between([rank(tcp=[launcher, one]), rank(tcp=[other])]) == ["tcp"]
    assert between([rank(tcp=[launcher]), rank(tcp=[launcher])]) == []


def test_memory_copies_and_devices_are_named_once():
    first = rank(shm_bytes=4096, devices=["/dev/infiniband/uverbs0"])
    second = rank(shm_bytes=4096, copies=3, file_bytes=1, devices=["/dev/infiniband/uverbs0"])
    assert between([first, second]) == ["/dev/infiniband/uverbs0", "cma", "file", "shm"]


def test_one_rank_and_witnesses_of_earlier_versions_tell_nothing():
    assert between([rank(shm_bytes=4096)]) == []
    assert between([{}, {}]) == []
