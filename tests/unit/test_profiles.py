"""Profiles: read, added up, held against the rank map, printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from profiled import call, place, profile, rank_document, sizes

from plumbline import cli
from plumbline.errors import PlumbError
from plumbline.profiles import crossed, difference, read, sums, text
from plumbline.profiles import schema as written
from plumbline.profiles.model import Place, RankProfile
from plumbline.records.model import RankSeen
from plumbline.topology import machine

BARRIER = call("Barrier", "collective", sizes(1, 0, 6000))
TWO = (
    rank_document(0, 2, [call("Send", "send", sizes(4, 8, 4000)), BARRIER], {1: 32}),
    rank_document(1, 2, [call("Send", "send", sizes(4, 8, 12000), sizes(1, 4096, 8000))], {0: 4128}),
)  # fmt: skip


def test_calls_are_added_up_over_ranks() -> None:
    """Most time first; COV is over the ranks' times."""
    send, barrier = sums.per_call(profile(*TWO).ranks)
    assert (send.call, send.count, send.time_ns, send.bytes) == ("Send", 9, 24000, 4160)
    assert (send.least_ns, send.most_ns, send.least_bytes, send.most_bytes) == (1000, 8000, 8, 4096)
    assert send.variation == pytest.approx(8000 / 12000)
    assert (barrier.call, barrier.variation) == ("Barrier", 0.0)
    rows = {(total.call, total.most_bytes): total.count for _, total in sums.per_size(profile(*TWO))}
    assert rows == {("Send", 8): 8, ("Send", 4096): 1, ("Barrier", 0): 1}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (place(0), "itself"),
        (place(1), "core"),
        (place(1, core=1), "L3"),
        (place(1, core=1, l3=1), "NUMA node"),
        (place(1, core=1, l3=1, numa=1), "package"),
        (place(1, core=1, l3=1, numa=1, package=1), "node"),
        (place(1, host="n2"), "between nodes"),
        (place(1, core=-1, l3=-1, numa=-1, package=-1), "node"),
    ],
)
def test_classes(other: Place, expected: str) -> None:
    """The smallest object that holds both ranks; a rank that is not bound shares the node alone."""
    assert crossed.class_of(place(0), other) == expected


def test_two_unbound_ranks_share_no_object() -> None:
    """-1 is no index."""
    loose = {"core": -1, "l3": -1, "numa": -1, "package": -1}
    assert crossed.class_of(place(0, **loose), place(1, **loose)) == "node"


def test_a_place_is_of_the_machine() -> None:
    """By the CPUs that the witness saw all threads bound to."""
    host = machine.load("package:2 l3:2 core:2 pu:2")
    thread = {"name": "p", "affinity": [2, 3], "last_cpu": 2}
    seen = {"host": "n1", "rank": 3, "local_rank": 3, "memory": {}, "usage": {}}
    one = read.place_of(msgspec.convert({**seen, "threads": [thread]}, RankSeen), host)
    assert (one.cpus, one.core, one.l3, one.package) == ([2, 3], 1, 0, 0)
    both = read.place_of(msgspec.convert({**seen, "threads": [thread, {**thread, "affinity": [8]}]}, RankSeen), host)
    assert (both.core, both.l3, both.package) == (-1, -1, -1)


def test_traffic_by_class_adds_up_to_the_matrix() -> None:
    """Nothing is counted twice or left out."""
    found = profile(*TWO, places=[place(0), place(1, core=1)])
    assert {name: (one.messages, one.bytes) for name, one in crossed.traffic(found).items()} == {"L3": (2, 4160)}
    assert crossed.matrix(found) == [[0, 32], [4128, 0]]


def test_what_is_printed() -> None:
    """Calls, sizes, classes and ranks; the important line last."""
    shown = text.text(profile(*TWO, places=[place(0), place(1, core=1)]))
    lines = shown.splitlines()
    assert lines[0].split() == ["command", "/bin/p", "1"]
    assert any(line.split()[:2] == ["MPI_Send", "9"] for line in lines)
    assert lines[-1] == (
        "MPI: 1.5 % of the wall time (1.0 to 2.0 % by rank), most of it MPI_Send (80.0 %); 100 % of the bytes sent: L3"
    )
    assert "cost: 30 ns a call, 16 ns of it the clock" in shown


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], "no rank left a profile"),
        ([TWO[0]], "rank 1 left no profile"),
        ([TWO[0], {**TWO[1], "ended": "SIGTERM"}], "partial profile: rank 1 was ended by SIGTERM"),
        ([{**one, "ended": "MPI_Abort"} for one in TWO], "partial profile: ranks 0, 1 (2) called MPI_Abort"),
        ([TWO[0], {**TWO[1], "ended": "exit"}], "rank 1 ended without MPI_Finalize"),
        ([TWO[0], {**TWO[1], "lost": {**TWO[1]["lost"], "requests": 3}}], "the tables of rank 1 were full"),
        ([TWO[0], {**TWO[1], "lost": {**TWO[1]["lost"], "peers": 1}}], "1 message without a peer: MPI_Mrecv"),
    ],
)
def test_what_is_missing_is_said(found: list[dict[str, Any]], words: str) -> None:
    """And printed with what there is."""
    ranks = [msgspec.convert(one, RankProfile) for one in found]
    assert words in " ".join(read.shortfalls(ranks, 2))
    missing = sorted({0, 1} - {one.rank for one in ranks})
    assert words in text.text(profile(*found, missing=missing))


def test_files_of_ranks(tmp_path: Path) -> None:
    """A damaged or unfinished file is named, the others are read; of two of one rank the one with more calls counts."""
    for name, document in (("a.1.json", TWO[1]), ("a.2.json", TWO[0]), ("a.3.json", {**TWO[0], "communicators": []})):
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / "a.4.json").write_text(json.dumps(TWO[0])[:200])
    (tmp_path / "a.5.json.part").write_text("{")
    found, faults = read.ranks(tmp_path)
    assert [(one.rank, one.calls) for one in found] == [(0, 5), (1, 5)]
    assert len(faults) == 2
    assert "a.4.json" in faults[0]
    assert "a.5.json" in faults[1]


def test_a_profile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the records of its site, valid by its schema; what is none is one error."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    whole = profile(*TWO, places=[place(0), place(1, core=1)])
    file = read.save("local", whole)
    assert read.load(file) == whole
    jsonschema.validate(json.loads(file.read_text()), json.loads(written.text()))
    for damage in ("", "{}", file.read_text()[:-9]):
        file.write_text(damage)
        with pytest.raises(PlumbError, match="cannot be read"):
            read.load(file)
    file.unlink()
    with pytest.raises(PlumbError, match="no profile"):
        read.load(file)


def test_the_schema_is_that_of_the_types() -> None:
    """``python -m plumbline.profiles.schema`` writes it."""
    stored = Path(written.__file__).parents[1] / "schemas" / "profile.json"
    assert stored.read_text(encoding="utf-8") == written.text()


def test_a_difference_says_what_changed() -> None:
    """More calls of one size, other peers; the row whose time changed most comes first."""
    slower = call("Send", "send", sizes(4, 8, 12000), sizes(3, 4096, 90000))
    now = profile(TWO[0], rank_document(1, 2, [slower], {0: 12320}), places=[place(0), place(1, core=1)])
    lines = difference.text(profile(*TWO, places=[place(0), place(1, core=1)]), now).splitlines()
    rows = [line.split() for line in lines if line.startswith("MPI_")]
    assert [row[:4] for row in rows] == [["MPI_Send", "4096", "1", "3"]]
    assert ["L3", "2", "2", "4160", "12352"] in [line.split() for line in lines]
    assert "bytes differ between 1 pair of ranks" in lines
    assert lines[-1] == (
        "other calls or sizes; MPI 1.5 % of the wall time, now 5.6 %; most of the change in MPI_Send (+0.000082 s)"
    )


def test_equal_profiles_differ_in_nothing() -> None:
    """And say so."""
    shown = difference.text(profile(*TWO), profile(*TWO))
    assert "no call differs" in shown
    assert "the same calls and sizes: only times differ" in shown


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "nothing to run"),
        (["heat1d"], "no stack to run it on"),
        (["--stack", "mpich"], "nothing to run"),
        (["--show", "ffff"], "no record"),
    ],
)
def test_what_cannot_be_profiled_is_one_line(
    words: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the cure; nothing is run."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    assert cli.main(["profile", *words]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert line in told[0]
