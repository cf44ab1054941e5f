"""Which nodes differ, and in what; reading folders with damaged files."""

import json

import pytest
from node_facts import node, typed, write

from plumbline.base.errors import PlumbError
from plumbline.commands import cli, sites
from plumbline.schedulers import believed
from plumbline.site.nodes import collection, compare
from plumbline.site.nodes.findings import examine_node


def many(folder, count, *others, **options):
    return write(folder, *(node(f"node{number}") for number in range(1, count + 1)), *others, **options)


def lines(folder):
    return [item.line() for item in compare.compare(collection.folder(folder)).differences]


@pytest.mark.parametrize("count", [1, 3])
def test_like_nodes(tmp_path, output_of, count):
    out = output_of(0, "nodes", "compare", str(many(tmp_path, count)))
    assert out.splitlines()[-1] == f"{count} of {count} nodes answered; they are equal"
    group = "largest group: 3 like nodes: AMD EPYC 9654, packages/cores/threads 2/4/8, NUMA nodes 2"
    assert count == 1 or group in out


@pytest.mark.parametrize(("change", "line"), [
    ({"memory_bytes": 188 << 30}, "node07: memory 188.0 GiB, 4 others have 252.0 GiB"),
    ({"smt": False}, "node07: SMT off, 4 others have on"),
    ({"kernel": "6.1.0-18"}, "node07: kernel 6.1.0-18, 4 others have 6.1.0-20"),
    ({"cpu": {"microcode": "0x1"}}, "node07: microcode 0x1, 4 others have 0xa101148"),
    ({"knobs": {"governor": None}}, "node07: governor not readable, 4 others have performance"),
    ({"knobs": {"thp": "never"}}, "node07: THP never, 4 others have always"),
    ({"knobs": {"numa_balancing": True}}, "node07: NUMA balancing on, 4 others have off"),
    (
        {"cgroup": {"cpu_quota": None, "memory_limit_bytes": None, "cpus_allowed": "0-2,7"}},
        "node07: CPUs allowed 4, 4 others have 8",
    ),
    ({"cores": 3}, "node07: packages/cores/threads 2/3/8, 4 others have 2/4/8"),
    (
        {"gpus": [{"address": "a", "class": "0302", "vendor": "0x10de", "device": "0x1", "numa": 1}]},
        "node07: GPUs 1 × 0x10de:0x1 at NUMA 1, 4 others have none",
    ),
    ({"hcas": []}, "node07: fabric adapters none, 4 others have 1 × MT4123 (ACTIVE 200.0 Gbit/s InfiniBand)"),
    (
        {"nics": [{"name": "e", "physical": True, "driver": "m", "speed_mbit": 1000, "state": "up", "numa": 0}]},
        "node07: network cards 1 × m 1 Gbit/s up, 4 others have 1 × mlx5_core 25 Gbit/s up",
    ),
    ({"time": 1007.5}, "node07: clock at least 5.5 s ahead of the host that started the job"),
    ({"time": 1001.9}, "node07: clock 1.9 s ahead of the median (or started then"),
])  # fmt: skip
def test_a_differing_node_is_named_with_what(tmp_path, change, line):
    (found,) = lines(many(tmp_path, 4, node("node07", **change)))
    assert found.startswith(line)


def test_nodes_that_are_asked_one_after_the_other_have_no_median_of_clocks(tmp_path):
    folder = many(tmp_path, 4, node("node07", time=1001.9))
    note = json.loads((folder / ".job.json").read_text())
    (folder / ".job.json").write_text(json.dumps({**note, "scheduler": "sge"}))
    assert lines(folder) == []


def test_numa_distances_count(tmp_path):
    numa = json.loads(json.dumps(node("x")["numa"]))
    numa[0]["distances"] = [10, 21]
    (found,) = lines(many(tmp_path, 4, node("node07", numa=numa)))
    assert "NUMA 2 (0:0-1,4-5 1:2-3,6-7; distances 10 21/32 10)" in found


@pytest.mark.parametrize(("other", "asked", "expected"), [
    (node("node9", memory_bytes=int((252 << 30) * 1.004)), {}, []),  # a little more memory is the same
    (node("node9", nics=node("x")["nics"][:1]), {}, []),  # virtual interfaces
    (node("node9.example"), {"asked": ["node1", "node2", "node3", "node9"]}, []),  # a full and a short name
    (node("node9"), {"asked": [], "size": 6}, ["?: 2 of the nodes that were asked for did not answer"]),
    (node("node9", job="older"), {}, ["node9: no answer; its file is of an earlier collection"]),
])  # fmt: skip
def test_what_is_no_difference_and_what_is_no_answer(tmp_path, other, asked, expected):
    assert lines(many(tmp_path, 3, other, **asked)) == expected


def test_nodes_without_an_answer_come_first(tmp_path, output_of):
    many(tmp_path, 3, node("node4", smt=False), asked=[f"node{n}" for n in range(1, 7)])
    out = output_of(1, "nodes", "compare", str(tmp_path)).splitlines()
    assert out[2].split() == ["node[5-6]", "no", "answer"]
    assert out[-1].startswith("3 of 6 nodes differ: node[5-6]: no answer; node4: SMT off, 3 others have on")


def test_damaged_files_are_named_and_the_rest_is_read(tmp_path, output_of):
    many(tmp_path, 3)
    text = (tmp_path / "node3.json").read_text()
    (tmp_path / "node3.json").write_text(text[: len(text) // 2])
    (tmp_path / "nodeX.json").write_text(text)
    (tmp_path / "node5.json").write_text("[]")
    out = output_of(1, "nodes", "compare", str(tmp_path))
    assert "'node3.json': not readable as JSON" in out
    assert "'nodeX.json': holds facts of node3" in out
    assert "'node5.json': not a valid node" in out
    assert sorted(collection.folder(tmp_path).nodes) == ["node1", "node2"]


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "../a", "a b", "a;id", "$(id)", "@all", ""])
def test_hostile_host_in_a_file(tmp_path, host):
    many(tmp_path, 2)
    (tmp_path / "bad.json").write_text(json.dumps(node(host)))
    found = collection.folder(tmp_path)
    assert sorted(found.nodes) == ["node1", "node2"]
    assert "bad.json" in found.damaged


@pytest.mark.parametrize("content", [None, "{"])
def test_no_node_is_an_error(tmp_path, content):
    if content:
        (tmp_path / "a.json").write_text(content)
    with pytest.raises(PlumbError, match="no facts of any node"):
        collection.folder(tmp_path)
    with pytest.raises(PlumbError, match="cannot read the facts"):
        collection.folder(tmp_path / "none")


def test_hostile_note(tmp_path):
    many(tmp_path, 2, asked=["node1", "$(id)"])
    with pytest.raises(PlumbError, match="not the note of a collection"):
        collection.folder(tmp_path)


def test_two_halves_are_said_to_be_halves(tmp_path, output_of):
    many(tmp_path, 1, node("node2", smt=False))
    assert "two groups are equally large" in output_of(1, "nodes", "compare", str(tmp_path))


def test_a_thousand_nodes(tmp_path):
    folder = many(tmp_path, 997, node("odd1", smt=False), node("odd2", smt=False), node("odd3", time=2000.0))
    assert lines(folder)[0] == "odd[1-2]: SMT off, 998 others have on"


def test_doctor_over_nodes(tmp_path, output_of):
    many(tmp_path, 4, node("node7", knobs={"governor": "powersave"}), node("node8", knobs={"turbo": None}))
    out = output_of(1, "doctor", "--facts", str(tmp_path)).splitlines()
    assert out[2].split()[:6] == ["!!", "frequency", "governor", "powersave", "1", "node7"]
    assert out[3].split()[:2] == ["??", "turbo"]
    assert out[-1] == "1 of 6 nodes have something to fix"
    many(tmp_path / "good", 2)
    assert cli.main(["doctor", "--facts", str(tmp_path / "good")]) == 0


def test_doctor_puts_few_before_many():
    found = {f"n{number}": examine_node(typed(f"n{number}", knobs={"thp": "never"})) for number in range(3)}
    found["n9"] = examine_node(typed("n9", knobs={"thp": "never", "numa_balancing": True}))
    rows = sites.nodes_report(found).splitlines()[2:4]
    assert "NUMA balancing" in rows[0]
    assert "n[0-2,9]" in rows[1]


THOUGHT = {
    "right": "NodeName=node1 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=250000 Gres=(null)",
    "threads": "NodeName=node2 Sockets=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=250000",
    "memory": "NodeName=node3 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=128000",
}


def test_a_scheduler_that_believes_in_other_nodes(tmp_path, capsys, monkeypatch):
    many(tmp_path, 4)
    monkeypatch.setattr(believed, "answer", lambda *_: "\n".join(THOUGHT.values()))
    assert cli.main(["nodes", "compare", str(tmp_path), "--scheduler", "slurm"]) == 1
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    assert [[word.strip() for word in line if word.strip()] for line in lines[2:5]] == [
        ["node2", "threads", "4", "8"], ["node3", "memory", "125 GiB", "252 GiB"], ["node4", "unknown to slurm"],
    ]  # fmt: skip
    next_line = "next: slurm.conf: NodeName=node[2-3] Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=258048"
    assert [" ".join(line) for line in lines[-2:]] == [next_line, "3 of 4 nodes not as slurm believes"]
    (tmp_path / "node2.json").unlink()
    for name in ("node3", "node4"):
        (tmp_path / f"{name}.json").unlink()
    assert cli.main(["nodes", "compare", str(tmp_path), "--scheduler", "slurm"]) == 0


GPU = {"address": "0000:41:00.0", "class": "0302", "vendor": "10de", "device": "2336"}


@pytest.mark.parametrize(("sockets", "gres", "numa", "lines"), [
    ("Sockets=2 CoresPerSocket=2", "gpu:h200:1(S:0)", 0, []),
    ("Sockets=4 CoresPerSocket=1", "gpu:h200:1(S:0)", 0, []),  # l3cache_as_socket, or numa_node_as_socket
    ("Sockets=1 CoresPerSocket=4", "gpu:h200:1(S:0)", 0, ["node1: packages 2"]),
    ("Sockets=2 CoresPerSocket=2", "gpu:h200:1", 0, ["node1: gpu_cores known", believed.GRES]),
    ("Sockets=2 CoresPerSocket=2", "gpu:h200:1", None, []),
    ("Sockets=2 CoresPerSocket=2", "(null)", 0, ["node1: gpus 1"]),
])  # fmt: skip
def test_sockets_that_are_parts_and_gpus_without_cores(tmp_path, monkeypatch, sockets, gres, numa, lines):
    write(tmp_path, node("node1", gpus=[{**GPU, "numa": numa}]))
    text = f"NodeName=node1 {sockets} ThreadsPerCore=2 RealMemory=250000 Gres={gres}"
    monkeypatch.setattr(believed, "answer", lambda *_: text)
    differences, cures = compare.against(collection.folder(tmp_path), "slurm")
    shown = [each.line().partition(",")[0] for each in differences]
    assert shown + [cure for cure in cures if cure == believed.GRES] == lines
