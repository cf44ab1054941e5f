"""Profiles: read, added up, held against the rank map, printed."""

import itertools
import json
from pathlib import Path

import msgspec
import pytest
import samples
import schema_files
from hypothesis import given
from hypothesis import strategies as st
from profiled import call, place, profile, rank_document, sizes

from plumbline.base.errors import PlumbError
from plumbline.extras.profiles import maps, text
from plumbline.host import machine
from plumbline.host.ceilings import Bound
from plumbline.host.counters import Counts
from plumbline.launch import conclusions, profile_files, profiles
from plumbline.launch.profiles import RankProfile
from plumbline.records.launch import RankSeen

GPC = Path(__file__).parents[3] / "data" / "topologies" / "gpc-2x4.xml"
HOSTS = st.sampled_from(["n1", "n2"])
BARRIER = call("Barrier", "collective", sizes(1, 0, 6000))
TWO = (
    rank_document(0, 2, [call("Send", "send", sizes(4, 8, 4000)), BARRIER], {1: 32}),
    rank_document(1, 2, [call("Send", "send", sizes(4, 8, 12000), sizes(1, 4096, 8000))], {0: 4128}),
)  # fmt: skip


def test_calls_are_added_up_over_ranks():
    """Most time first; COV is over the ranks' times."""
    send, barrier = profiles.per_call(profile(*TWO).ranks)
    assert (send.call, send.count, send.time_ns, send.bytes) == ("Send", 9, 24000, 4160)
    assert (send.least_ns, send.most_ns, send.least_bytes, send.most_bytes) == (1000, 8000, 8, 4096)
    assert send.variation == pytest.approx(8000 / 12000)
    assert (barrier.call, barrier.variation) == ("Barrier", 0.0)
    rows = {(total.call, total.most_bytes): total.count for _, total in profiles.per_size(profile(*TWO))}
    assert rows == {("Send", 8): 8, ("Send", 4096): 1, ("Barrier", 0): 1}


@pytest.mark.parametrize(("other", "expected"), [
    (place(0), "itself"),
    (place(1), "core"),
    (place(1, core=1), "L3"),
    (place(1, core=1, l3=1), "NUMA node"),
    (place(1, core=1, l3=1, numa=1), "package"),
    (place(1, core=1, l3=1, numa=1, package=1), "node"),
    (place(1, host="n2"), "between nodes"),
    (place(1, core=-1, l3=-1, numa=-1, package=-1), "node"),
])  # fmt: skip
def test_classes(other, expected):
    """The smallest object that holds both ranks; a rank that is not bound shares the node alone."""
    assert profiles.class_of(place(0), other) == expected


def test_two_unbound_ranks_share_no_object():
    """-1 is not an index."""
    loose = {"core": -1, "l3": -1, "numa": -1, "package": -1}
    assert profiles.class_of(place(0, **loose), place(1, **loose)) == "node"


def test_a_place_is_of_the_machine():
    """By the CPUs that the witness saw all threads bound to."""
    host = machine.load("package:2 l3:2 core:2 pu:2")
    thread = {"name": "p", "affinity": [2, 3], "last_cpu": 2}
    seen = {"host": "n1", "rank": 3, "local_rank": 3, "memory": {}, "usage": {}}
    one = profile_files.place_of(msgspec.convert({**seen, "threads": [thread]}, RankSeen), host)
    assert (one.cpus, one.core, one.l3, one.package) == ([2, 3], 1, 0, 0)
    two = {**seen, "threads": [thread, {**thread, "affinity": [8]}]}
    both = profile_files.place_of(msgspec.convert(two, RankSeen), host)
    assert (both.core, both.l3, both.package) == (-1, -1, -1)


def test_traffic_by_class_adds_up_to_the_matrix():
    found = profile(*TWO, places=[place(0), place(1, core=1)])
    assert {name: (one.messages, one.bytes) for name, one in profiles.traffic(found).items()} == {"L3": (2, 4160)}
    assert maps.messages(found)[..., 1].tolist() == [[0, 32], [4128, 0]]


def test_few_ranks_have_a_row_for_each_call():
    """Each call of each of few ranks, with its shares of that rank's times."""
    lines = text.text(profile(*TWO, places=[place(0), place(1, core=1)])).splitlines()
    assert [line.split()[-2:] for line in lines if line.split()[:2] == ["MPI_Send", "0"]] == [["40.00", "0.40"]]
    assert "call           rank" not in text.text(ring(8, 2))


def busy_rank(faults):
    """A rank without MPI that worked for 10 s."""
    usage = {"wall_s": 10.0, "user_s": 7.8, "system_s": 2.2, "voluntary_switches": 10, "minor_faults": faults,
             "major_faults": 0}  # fmt: skip
    threads = [{"name": "p", "affinity": [0], "last_cpu": 0, "cpu_s": 10.0}]
    document = {"host": "n", "rank": 0, "local_rank": 0, "mpi": False, "threads": threads, "memory": {}, "usage": usage}
    return [msgspec.convert(document, RankSeen)]


CEILING = Bound(12000.0, "MB/s", "memory, 2 x one core", 1.0)
COUNTED = {"cpu_ns": 10**10, "instructions": 3 * 10**10, "cycles": 2 * 10**10, "cache_misses": 10**9}


@pytest.mark.parametrize(("counts", "moved", "ceiling", "lines"), [
    (Counts(COUNTED, line_bytes=64), 0.0, CEILING, [
        "counted in user mode: 30 x 10^9 instructions, 1.50 a cycle, at 2.56 GHz",
        "memory: at least 6.400 GB/s, 53 % of 12.00 GB/s (memory, 2 x one core)",
        "memory bandwidth: at least 53 % of what these cores reach; move fewer bytes",
    ]),
    (Counts(missing="other programs use the hardware counters"), 3e10, None, [
        "not counted: other programs use the hardware counters",
        "memory: at least 3.000 GB/s, no ceiling is known for its cores: plumb site measure",
    ]),
    (Counts({**COUNTED, "cpu_ns": 10**9}), 0.0, CEILING, [
        "not counted: a daemon, a job step or another node started the ranks; a time with bytes in plumb.yaml gives",
    ]),
])  # fmt: skip
def test_processors_and_memory_are_said_as_far_as_they_are_known(counts, moved, ceiling, lines):
    ranks = busy_rank(0)
    rules = {"rules": {"figures": {"part": {"bytes": moved / 2}, "time": {"bytes": moved}, "speed": {}}}}
    variant = msgspec.structs.replace(samples.asked(), context=rules if moved else {})
    shown = text.beyond(ranks, conclusions.work_seen(counts, ranks, variant), ceiling)
    assert [line for line in lines if f"\n{line}" not in shown] == []


def test_time_beyond_mpi_is_of_every_program():
    """A line for each rank, and the cost with what to try; without MPI nothing else is printed."""
    seen = busy_rank(253_546)
    first, *_, last = text.text(profile(), seen).splitlines()
    assert first == "no rank called MPI_Init"
    assert last.startswith("page faults: 253,546 pages were mapped, 25,355 in a second of CPU time, and 22 % of")
    assert ["0", "10.00", "10.00", "2.20", "253,546", "10", "10.00"] in map(str.split, text.beyond(seen).splitlines())
    lines = text.text(profile(*TWO, places=[place(0), place(1, core=1)]), seen).splitlines()
    assert (lines[-1][:4], lines[-3]) == ("MPI:", last)


def test_time_while_the_profile_was_off():
    """Said before the tables, kept in the file, and no part of the wall time; absent where it was never off."""
    off = profile({**TWO[0], "off_ns": 3_000_000}, TWO[1])
    shown = text.text(off).splitlines()
    assert "counted    0.001 s of 0.0025 s a rank: the program switched the profile off (MPI_Pcontrol)" in shown
    assert shown[-1].startswith("MPI: 1.5 % of the time counted (")
    assert "counted  " not in text.text(profile(*TWO))
    kept = msgspec.to_builtins(off)["ranks"]
    assert [one.get("off_ns") for one in kept] == [3_000_000, None]


@pytest.mark.parametrize(("found", "words"), [
    ([], "no rank left a profile"),
    ([TWO[0]], "rank 1 left no profile"),
    ([{**TWO[0], "size": 1, "peers": []}], "MPI_COMM_WORLD had 1 rank, 2 were started: built for another MPI libr"),
    ([TWO[0], {**TWO[1], "ended": "SIGTERM"}], "partial profile: rank 1 was ended by SIGTERM"),
    ([{**one, "ended": "MPI_Abort"} for one in TWO], "partial profile: ranks 0, 1 (2) called MPI_Abort"),
    ([TWO[0], {**TWO[1], "ended": "exit"}], "rank 1 ended without MPI_Finalize"),
    ([TWO[0], {**TWO[1], "ended": "killed"}], "partial profile: rank 1 was killed: up to a tenth of its time"),
    ([{**one, "ended": "killed"} for one in TWO], "partial profile: ranks 0, 1 (2) were killed: up to a tenth"),
    ([TWO[0], {**TWO[1], "lost": {**TWO[1]["lost"], "requests": 3}}], "the tables of rank 1 were full"),
    ([TWO[0], {**TWO[1], "lost": {**TWO[1]["lost"], "peers": 1}}], "1 message without a peer: MPI_Mrecv"),
])  # fmt: skip
def test_what_is_missing_is_said(found, words):
    ranks = [msgspec.convert(one, RankProfile) for one in found]
    assert words in " ".join(profile_files.shortfalls(ranks, 2))
    missing = sorted({0, 1} - {one.rank for one in ranks})
    assert words in text.text(profile(*found, missing=missing))


def test_files_of_ranks(tmp_path):
    """A damaged or unfinished file is named, the others are read; of two of one rank the one with more calls counts."""
    for name, document in (("a.1.json", TWO[1]), ("a.2.json", TWO[0]), ("a.3.json", {**TWO[0], "communicators": []})):
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / "a.4.json").write_text(json.dumps(TWO[0])[:200])
    (tmp_path / "a.5.json.part").write_text("{")
    found, faults = profile_files.ranks(tmp_path)
    assert [(one.rank, one.calls) for one in found] == [(0, 5), (1, 5)]
    assert len(faults) == 2
    assert "a.4.json" in faults[0]
    assert "a.5.json" in faults[1]


def test_a_profile_is_kept(tmp_path, monkeypatch):
    """Beside the records of its site, valid by its schema; what is none is one error."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    whole = profile(*TWO, places=[place(0), place(1, core=1)])
    file = profile_files.save("local", whole)
    assert profile_files.load(file) == whole
    schema_files.check("profile", json.loads(file.read_text()))
    for damage in ("", "{}", file.read_text()[:-9]):
        file.write_text(damage)
        with pytest.raises(PlumbError, match="cannot be read"):
            profile_files.load(file)
    file.unlink()
    with pytest.raises(PlumbError, match="no profile"):
        profile_files.load(file)


def test_a_difference_says_what_changed():
    """More calls of one size, other peers; the row whose time changed most comes first."""
    slower = call("Send", "send", sizes(4, 8, 12000), sizes(3, 4096, 90000))
    now = profile(TWO[0], rank_document(1, 2, [slower], {0: 12320}), places=[place(0), place(1, core=1)])
    lines = text.difference(profile(*TWO, places=[place(0), place(1, core=1)]), now).splitlines()
    rows = [line.split() for line in lines if line.startswith("MPI_")]
    assert [row[:4] for row in rows] == [["MPI_Send", "4096", "1", "3"]]
    assert ["L3", "2", "2", "4160", "12352"] in [line.split() for line in lines]
    assert ["1", "0", "4128", "12320"] in [line.split() for line in lines]
    assert "bytes differ between 1 pair of ranks" in lines
    assert lines[-1].startswith("other calls or sizes; MPI 1.5 % of the wall time, now 5.6 %; most of the change")


def test_ranks_without_a_call():
    """MPI_Init and MPI_Finalize alone: said, in each form."""
    bare = profile(rank_document(0, 1, [], {}))
    assert text.text(bare).splitlines()[-1] == "MPI: no call between MPI_Init and MPI_Finalize was counted"
    assert "no call differs" in text.difference(bare, bare)
    assert text.caliper(bare)


def ring(ranks, stride, places=None):
    """SciNet's ring along the columns of a grid: rank r sends 524288 B to r + stride."""
    documents = [rank_document(rank, ranks, [], {(rank + stride) % ranks: 524288}) for rank in range(ranks)]
    return profile(*documents, places=places)


def test_placement_before_tuning():
    """SciNet's case on 4 nodes of 2 x 4 cores: in blocks every byte leaves its node, dealt in turn none."""
    found = {one.name: one for one in maps.elsewhere(ring(32, 8), str(GPC), 4, 1)}
    whole = 32 * 524288
    sent = {name: {one.inside: one.bytes for one in each.traffic} for name, each in found.items()}
    assert sent["compact"] == {"between nodes": whole}
    assert "between nodes" not in sent["roundrobin"]
    assert sent["suggested"] == {"L3": whole}
    assert all(sum(size.values()) == whole for size in sent.values())
    assert sorted(found["suggested"].ranks) == list(range(32))
    shown = text.map_table(list(found.values())).splitlines()
    assert f"suggested instead of compact: {whole} of {whole} B fewer between nodes" in shown


@given(st.integers(2, 12), st.data())
def test_a_suggestion_is_a_map_that_sends_less_far(ranks, data):
    """Every rank has one place, no byte is lost, and what goes farthest is less; or nothing is suggested."""
    peers = st.dictionaries(st.integers(0, ranks - 1), st.integers(1, 10**9), max_size=ranks)
    documents = [rank_document(rank, ranks, [], data.draw(peers)) for rank in range(ranks)]
    kinds = st.integers(-1, 2)
    places = [
        place(
            rank, core=rank, l3=data.draw(kinds), numa=data.draw(kinds), package=data.draw(kinds), host=data.draw(HOSTS)
        )
        for rank in range(ranks)
    ]
    whole = profile(*documents, places=places)
    found = maps.here(whole)
    if found:
        now, better = found
        assert {one.inside: one for one in now.traffic} == profiles.traffic(whole)
        assert sorted(better.ranks) == list(range(ranks))
        assert sum(one.bytes for one in better.traffic) == sum(one.bytes for one in now.traffic)
        assert maps.distance(better) < maps.distance(now)


def test_the_best_map_of_small_cases_is_found():
    """Two ranks that exchange most, on different nodes of two ranks each: no order of the ranks sends less far."""
    sent = {(0, 2): 900, (1, 3): 700, (0, 1): 50, (2, 3): 40}
    ranks = [rank_document(one, 4, [], {to: size for (by, to), size in sent.items() if by == one}) for one in range(4)]
    places = [place(rank, core=rank, host=f"n{rank // 2}") for rank in range(4)]
    whole = profile(*ranks, places=places)
    better = maps.here(whole)[-1]
    every = [maps.rank_map("x", maps.messages(whole), places, order) for order in itertools.permutations(range(4))]
    assert maps.distance(better) == min(map(maps.distance, every)) == (90, 0, 0, 0, 1600, 0, 0)
    assert "1510 of 1600 B fewer between nodes" in text.text(whole)
    seated = [msgspec.structs.replace(places[better.ranks.index(rank)], rank=rank) for rank in range(4)]
    assert maps.here(profile(*ranks, places=seated)) == []


@pytest.mark.parametrize(("ranks", "nodes", "line"), [(32, 3, "do not fill 3 nodes"), (1, 1, "2 to 512 ranks, not 1")])
def test_maps_that_cannot_be(ranks, nodes, line):
    with pytest.raises(PlumbError, match=line):
        maps.elsewhere(ring(ranks, 1), str(GPC), nodes, 1)


def test_what_json_prints(tmp_path, monkeypatch, output_of):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    whole = ring(32, 8, [place(rank, core=rank) for rank in range(32)])
    stored_record(tmp_path, "0123456789ab")
    profile_files.save("local", whole)
    shown = json.loads(output_of(0, "profile", "--show", "0123", "--json", "--on", str(GPC), "--nodes", "4"))
    schema_files.check("profile", shown)
    assert shown["traffic"] == [{"inside": "L3", "messages": 32, "bytes": 32 * 524288}]
    assert [one["name"] for one in shown["maps"]] == ["compact", "scatter", "roundrobin", "suggested"]


def stored_record(results, ident):
    """A profiled record in the results of the site ``local``."""
    launches = [{**samples.launch(0, 1.0), "measurements": []}]
    document = samples.record(
        id=ident, site="local", figures=[], launches=launches, variant=samples.variant(profiled=True), verdict="invalid"
    )
    file = results / "local" / f"{ident}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document) + "\n")


@pytest.mark.parametrize(("words", "line"), [
    (["--show", "ffff", "--against", "ffff", "--json"], "--json is of one profile"),
    (["heat1d"], "no stack to run it on"),
    (["--stack", "mpich"], "nothing to run"),
])  # fmt: skip
def test_what_cannot_be_profiled_is_one_line(words, line, tmp_path, monkeypatch, refused):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    assert line in refused(2, "profile", *words)
