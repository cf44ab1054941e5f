"""Loading witness files: whatever lies there, the answer is a list and reasons."""

import json

import pytest
from witnesses import read

from plumbline.base.units import cpu_list, cpu_ranges, numbered

GOOD = {
    "schema": 1,
    "host": "n1",
    "pid": 10,
    "parent": 1,
    "ancestors": [1],
    "personality": 0,
    "root": 10,
    "forked": False,
    "mpi": True,
    "objects": [],
    "rank": 1,
    "local_rank": 1,
    "size": 2,
    "program": "/bin/stream",
    "plan": None,
    "start": {"affinity": [0], "policy": 0, "nice": 0, "personality": 0},
    "ended": [],
    "threads": [{"tid": 10, "name": "stream", "affinity": [0], "last_cpu": 0, "cpu_s": 1, "policy": 0, "nice": 0}],
    "memory": {"page_bytes": 4096, "threshold_bytes": 1048576, "nodes": {"0": 300}, "freed_nodes": {}},
    "window": {"wall_s": 1, "cpu_s": 1, "delay_s": 0},
    "usage": {
        **dict.fromkeys(("wall_s", "user_s", "system_s", "before_s", "children_s", "unlisted_s"), 1),
        **dict.fromkeys(("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults"), 1),
    },
}


def write(folder, name, document):
    (folder / name).write_text(document if isinstance(document, str) else json.dumps(document))


def test_witnesses_come_in_the_order_of_their_ranks(tmp_path):
    write(tmp_path, "n1.10.json", GOOD)
    write(tmp_path, "n1.11.json", {**GOOD, "pid": 11, "root": 11, "rank": 0, "local_rank": 0})
    write(tmp_path, "n1.12.json.part", "half a file that is still being written")
    found, reasons = read(tmp_path)
    assert [item["rank"] for item in found] == [0, 1]
    assert reasons == []


@pytest.mark.parametrize("text", ["", "{", json.dumps(GOOD)[:-30], "[" * 100_000, "\xff\x00", "[]", "null"])
def test_a_damaged_file_is_named_and_the_rest_is_read(tmp_path, text):
    write(tmp_path, "n1.10.json", GOOD)
    (tmp_path / "n1.11.json").write_bytes(text.encode("latin-1"))
    found, reasons = read(tmp_path)
    assert len(found) == 1
    assert len(reasons) == 1
    assert "n1.11.json" in reasons[0]


def test_a_file_that_breaks_the_schema_is_named_with_its_key(tmp_path):
    write(tmp_path, "n1.10.json", {**GOOD, "threads": []})
    found, (reason,) = read(tmp_path)
    assert found == []
    assert "n1.10.json" in reason
    assert "threads" in reason


def test_a_missing_folder_is_a_reason(tmp_path):
    assert read(tmp_path / "gone") == ([], [f"no witness folder {tmp_path / 'gone'}"])


@pytest.mark.parametrize(
    ("cpus", "text"),
    [([], "none"), ([3], "3"), ([0, 1, 2, 3, 8], "0-3,8"), ([8, 1, 0, 1], "0-1,8"), ([0, 2, 4], "0,2,4")],
)
def test_cpu_lists_are_ranges(cpus, text):
    assert cpu_list(cpus) == text
    if cpus:
        assert [cpu for part in cpu_ranges(text) for cpu in part] == sorted(set(cpus))


@pytest.mark.parametrize("text", ["", "none", "1,", "1-", "-1", "0-3:1/2", "1 2", "\u0663"])
def test_what_is_no_cpu_list_is_refused(text):
    with pytest.raises(ValueError, match="is not a list of CPUs"):
        cpu_ranges(text)


def test_nouns_agree_with_their_number():
    assert numbered("CPU", [3]) == "CPU 3"
    assert numbered("node", [0, 1]) == "nodes 0-1"


def test_a_library_of_an_earlier_version_is_told_apart(tmp_path):
    write(tmp_path, "n1.10.json", {key: value for key, value in GOOD.items() if key != "ancestors"})
    found, (reason,) = read(tmp_path)
    assert found == []
    assert reason.startswith("witness file of an earlier libplumbwitness.so")
    assert reason.endswith("build the tools again: make setup")
