"""References: matching, judging, calibrating, writing and checking; each guard with a file or record that breaks it."""

import argparse
import json
import math
import shutil

import pytest
import reframe.utility.sanity as sanity
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert as convert_to
from msgspec import structs, to_builtins
from reframe.core.exceptions import SanityError
from samples import launch, record, session, variant
from stored import keep

from plumbline import site
from plumbline.base import units
from plumbline.base.errors import PlumbError
from plumbline.commands.judge import run_calibrate, run_lint
from plumbline.judge.references import References, calibrate, judge, match
from plumbline.judge.references.faults import faults
from plumbline.judge.references.match import Calibrated, Entry
from plumbline.records.model import convert

TOPOLOGIES = __file__.rpartition("/unit/")[0] + "/data/topologies"
SITE = """\
schema: 1
name: local
description: a site for tests
hostnames: [".*"]
partitions:
  - name: default
    scheduler: local
    topology: topology/default.xml
    stacks: [openmpi]
    facts: {memory_channels_per_package: 2, memory_mts: 3200}
"""
FILE = """\
# What stream is expected to reach here.
schema: 1
test: stream
references: []
"""
DECLARED = """\
# What stream is expected to reach here.
schema: 1
test: stream
references:
  # from the vendor's data sheet
  - test: stream_ranks
    figure: copy # the easiest one
    stack: openmpi
    partition: default
    params: {placement: numa, memory: "local"}
    value: 50000
    unit: MB/s
    better: higher
    lower: -0.1
    upper: null
    method: declared
    source: {document: "data sheet, page 3"}
  # the last word
"""


@pytest.fixture
def local(tmp_path, monkeypatch):
    """A site with an empty reference file and two packages of two channels (102400 MB/s)."""
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    folder = tmp_path / "sites" / "local"
    (folder / "references").mkdir(parents=True)
    (folder / "topology").mkdir()
    (folder / "site.yaml").write_text(SITE)
    shutil.copyfile(f"{TOPOLOGIES}/ulysses-2x10.xml", folder / "topology" / "default.xml")
    (folder / "references" / "stream.yaml").write_text(FILE)
    return folder


def entry(**changes):
    """A reference that matches :func:`samples.record`."""
    return {
        "test": "stream_threads",
        "figure": "triad",
        "stack": "openmpi",
        "partition": "default",
        "params": {"placement": "compact", "threads": 2},
        "value": 10000.0,
        "unit": "MB/s",
        "better": "higher",
        "lower": -0.05,
        "upper": 0.05,
        "method": "declared",
        "source": {"document": "a person"},
        **changes,
    }


def typed(**changes):
    """The same as readers have it."""
    return convert_to(entry(**changes), Entry)


def figure(**changes):
    """The figure of :func:`samples.record`."""
    return structs.replace(convert(record()).figures[0], **changes)


def propose(made, *arguments, **options):
    return calibrate.propose([convert(one).row() for one in made], *arguments, **options)


def put(local, *entries, name="stream"):
    document = {"schema": 1, "test": name, "references": list(entries)}
    (local / "references" / f"{name}.yaml").write_text(yaml.safe_dump(document))


def run(command, *arguments):
    parser = argparse.ArgumentParser()
    command.add_to(parser)
    args = parser.parse_args([str(argument) for argument in arguments])
    return args.run(args)


# --- matching and judging


def test_what_matches_is_found_with_its_file(local):
    put(local, entry(), entry(figure="copy", value=1.0))
    found = References.load("local").resolve(convert(record()), "triad")
    kept = {key: entry()[key] for key in ("value", "unit", "method", "lower", "upper")}
    assert to_builtins(found.of_record()) == {**kept, "file": "local/references/stream.yaml"}


@pytest.mark.parametrize("change", [
    {"test": "stream_ranks"},
    {"figure": "copy"},
    {"stack": "mpich"},
    {"partition": "gpu"},
    {"params": {"placement": "compact", "threads": 4}},
    {"params": {"placement": "compact"}},
    {"params": {"placement": "compact", "threads": 2, "memory": "local"}},
    {"placement": {"name": "scatter"}},
    {"placement": {"ranks_per_node": 2}},
])  # fmt: skip
def test_what_differs_does_not_match(local, change):
    put(local, entry(**change))
    assert References.load("local").resolve(convert(record()), "triad") is None
    assert judge(figure(), None) == "unreferenced"


def test_a_placement_that_agrees_matches(local):
    put(local, entry(placement={"name": "compact", "threads": 2}))
    assert References.load("local").resolve(convert(record()), "triad") is not None


@pytest.mark.parametrize("second", [{}, {"placement": {"name": "compact"}, "value": 1.0}])
def test_two_that_match_are_an_error(local, second):
    put(local, entry(), entry(**second))
    with pytest.raises(PlumbError, match=r"2 references match stream_threads .* \(local/references/stream.yaml\)"):
        References.load("local").resolve(convert(record()), "triad")


@pytest.mark.parametrize(("better", "value", "verdict"), [
    ("higher", 9500.0, "within"),
    ("higher", 9499.0, "below"),
    ("higher", 10500.0, "within"),
    ("higher", 10501.0, "above"),
    ("lower", 9499.0, "above"),
    ("lower", 10000.0, "within"),
    ("lower", 10501.0, "below"),
])  # fmt: skip
def test_below_is_worse_and_above_is_better(better, value, verdict):
    assert judge(figure(better=better, value=value), typed(better=better)) == verdict


def test_an_open_bound_bounds_nothing():
    assert judge(figure(value=1e9), typed(upper=None)) == "within"
    assert judge(figure(value=1e-9), typed(lower=None)) == "within"


@settings(max_examples=300)
@given(
    value=st.floats(1e-3, 1e9),
    expected=st.floats(1e-3, 1e9) | st.none(),
    lower=st.floats(-0.99, 0) | st.none(),
    upper=st.floats(0, 1) | st.none(),
    better=st.sampled_from(["higher", "lower"]),
)
def test_reframe_fails_what_is_not_within_and_nothing_else(value, expected, lower, upper, better):
    """``expected`` None: the value lies on the lower bound, as near as floats can tell."""
    at_bound = value / (1 + (lower or 0))
    reference = typed(value=expected or at_bound, lower=lower, upper=upper, better=better)
    verdict = judge(figure(better=better, value=value), reference)
    *limits, _ = match.thresholds(match.Match(reference, "a file").of_record(), value)
    try:
        sanity.evaluate(sanity.assert_reference(value, *limits))
        assert verdict == "within"
    except SanityError:
        assert verdict != "within"


@pytest.mark.parametrize("change", [{"unit": "GB/s"}, {"better": "lower"}, {"value": math.nan}, {"value": math.inf}])
def test_what_cannot_be_compared_is_an_error_and_never_within(change):
    with pytest.raises(PlumbError):
        judge(figure(**change), typed())


# --- calibrating


def test_the_value_is_the_median_of_the_sessions_medians(local):
    made = [session(0, 1.0, 10000.0, 10000.0), session(1, 10100.0), session(2, 10300.0, 10300.0, 90000.0)]
    (change,) = propose(made, "local").changes["stream"]
    new = change.new
    assert (change.old, change.kept) == (None, None)
    assert (new.value, new.unit, new.better, new.method) == (10100.0, "MB/s", "higher", "calibrated")
    source = new.source
    assert source.records == [f"{number:012x}" for number in range(3)]
    assert (source.sessions, source.dates) == (3, ["2026-01-01", "2026-01-03"])
    assert source.spread == pytest.approx(1.4826 * 100 / 10100, rel=1e-3)
    assert (source.nodes, source.stack_sha256, source.suite_commit) == (["node1"], "0" * 64, "f" * 40)
    # 99 % of t with 2 degrees of freedom is within 9.925 deviations; one new session: times sqrt(4/3)
    assert new.upper == -new.lower == pytest.approx(9.925 * math.sqrt(4 / 3) * source.spread, abs=1e-3)


def test_calm_sessions_have_the_narrowest_bounds(local):
    (change,) = propose([session(number) for number in range(3)], "local").changes["stream"]
    assert (change.new.lower, change.new.upper) == (-0.05, 0.05)


def test_the_next_printed_value_is_within(local):
    """0.11 us may be 0.1149 us, and 0.12 us be 0.1151 us."""
    (change,) = propose([session(number, 0.11, 0.11, 0.11) for number in range(3)], "local").changes["stream"]
    assert [judge(figure(value=value), change.new) for value in (0.10, 0.12, 0.13)] == ["within", "within", "above"]


@pytest.mark.parametrize(("spoil", "reason"), [
    ({"state": "running"}, "not complete"),
    ({"verified": False}, "not verified"),
    ({"launches": [launch(0, 10000.0, verified=False)]}, "not verified"),
    ({"reasons": ["above the limit"]}, "invalid"),
    ({"verdict": "invalid"}, "invalid"),
    ({"figures": []}, "invalid"),
    ({"launches": [launch(k, 1e4, disturbed=k < 2) for k in range(3)]}, "most launches disturbed"),
])  # fmt: skip
def test_what_is_refused(local, spoil, reason):
    bad = {**session(0), **spoil}
    outcome = propose([bad, session(1), session(2)], "local")
    assert outcome.refused == {("record", reason): 1, ("figure", "fewer than 3 sessions"): 1}
    assert outcome.changes == {}


@pytest.mark.parametrize(
    ("value", "reason"), [(99000.0, "above the physical limit"), (0.0, "not a positive"), (math.nan, "not a positive")]
)
def test_figures_that_cannot_be_are_refused(local, value, reason):
    bad = session(0, value)
    bad["figures"][0]["limit"] = {"value": 51200.0, "unit": "MB/s", "method": "channels"}
    assert calibrate.refusal(convert(bad).row()).startswith(reason)


def test_half_of_the_launches_may_be_disturbed():
    made = {**session(0), "launches": [launch(k, 1e4, disturbed=k < 2) for k in range(4)]}
    assert calibrate.refusal(convert(made).row()) is None


def test_records_of_one_session_are_one(local):
    twice = [session(0), {**session(1), "session": "s0"}, session(2)]
    assert propose(twice, "local").changes == {}


def test_an_older_build_of_the_stack_does_not_count(local):
    old = [session(number, stack={**record()["stack"], "sha256": "e" * 64}) for number in range(3)]
    assert propose([*old, session(3), session(4)], "local").changes == {}
    (change,) = propose([*old, session(3), session(4), session(5)], "local").changes["stream"]
    assert change.new.source.records == [f"{number:012x}" for number in (3, 4, 5)]


def test_sessions_that_differ_too_much_give_no_reference(local):
    outcome = propose([session(0, 5000.0), session(1, 10000.0), session(2, 20000.0)], "local")
    assert outcome.changes == {}
    assert ("figure", "sessions too different for bounds of 50%") in outcome.refused


def test_other_sites_and_tests_are_left_out(local, capsys):
    assert propose([session(number, site="elsewhere") for number in range(3)], "local").changes == {}
    store_sessions()
    assert run(run_calibrate, "--until", "2000-01-01") == 1
    assert "0 of 0 references changed" in capsys.readouterr().out
    with pytest.raises(PlumbError, match="no record of a test whose name begins with 'imb'"):
        run(run_calibrate, "--test", "imb")


def test_one_session_is_never_enough(local):
    with pytest.raises(PlumbError, match="one session"):
        propose([session(0)], "local", min_sessions=1)


def store_sessions(*made, **changes):
    keep(*(made or [session(number, **changes) for number in range(3)]))


def test_calibrate_writes_once_and_keeps_comments_and_other_entries(local, capsys):
    file = local / "references" / "stream.yaml"
    file.write_text(DECLARED)
    store_sessions()
    assert run(run_calibrate, "--dry-run") == 0
    assert file.read_text() == DECLARED
    assert "1 of 1 reference would change" in capsys.readouterr().out
    assert run(run_calibrate) == 0
    shown = capsys.readouterr().out
    assert "stream_threads placement=compact threads=2 triad openmpi default" in shown
    assert "±5.0%" in shown
    text = file.read_text()
    assert text.startswith(DECLARED[: DECLARED.index("  # the last word")])
    assert "# the last word" in text
    assert [path.name for path in file.parent.iterdir()] == ["stream.yaml"]
    found = References.load("local").resolve(convert(session(9)), "triad")
    assert (found.entry.value, type(found.entry)) == (10100.0, Calibrated)
    assert run(run_calibrate) == 0
    assert "0 of 1 reference changed" in capsys.readouterr().out
    assert file.read_text() == text
    assert faults("local", {"stream_threads", "stream_ranks"}) == []


def test_calibrate_moves_its_own_entry_in_place(local, capsys):
    store_sessions()
    run(run_calibrate)
    file = local / "references" / "stream.yaml"
    file.write_text(file.read_text().replace("    value: 10100.0", "    # look at this one\n    value: 10100.0 # MB/s"))
    store_sessions(*(session(number, 12120.0, 12120.0) for number in range(3, 8)))
    capsys.readouterr()
    assert run(run_calibrate) == 0
    assert "+20.0 %" in capsys.readouterr().out
    text = file.read_text()
    assert "# look at this one" in text
    assert "value: 12120.0 # MB/s" in text
    assert len(yaml.safe_load(text)["references"]) == 1


def test_calibrate_leaves_what_people_declared(local, capsys):
    store_sessions()
    put(local, entry(placement=record()["placement"], value=9000.0))
    before = (local / "references" / "stream.yaml").read_text()
    assert run(run_calibrate) == 0
    assert "declared, left alone" in capsys.readouterr().out
    assert (local / "references" / "stream.yaml").read_text() == before


def test_a_declared_entry_that_says_less_of_the_placement_is_left_alone_too(local):
    """A second, calibrated entry beside it would match the same records."""
    put(local, entry(value=9000.0))
    (change,) = propose([session(number) for number in range(3)], "local").changes["stream"]
    assert (change.kept, change.old.value) == ("declared, left alone", 9000.0)


def test_a_word_that_yaml_reads_as_something_else_survives(local):
    odd = variant(params={"placement": "compact", "mode": "on", "other": "no", "id": "0b1", "float": "1e3"})
    store_sessions(variant=odd)
    assert run(run_calibrate) == 0
    assert References.load("local").resolve(convert(session(0, variant=odd)), "triad") is not None


def test_a_missing_file_is_made(local):
    (local / "references" / "stream.yaml").unlink()
    store_sessions()
    assert run(run_calibrate) == 0
    assert References.load("local").resolve(convert(session(0)), "triad") is not None


def test_a_file_that_cannot_be_replaced_is_untouched(local, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    store_sessions()
    monkeypatch.setattr("plumbline.base.files.os.fsync", full)
    with pytest.raises(PlumbError, match="No space left"):
        run(run_calibrate)
    assert (local / "references" / "stream.yaml").read_text() == FILE
    assert len(list((local / "references").iterdir())) == 1


# --- lint


def test_sound_references_have_no_fault(local, capsys):
    put(local, entry())
    assert run(run_lint) == 0
    assert capsys.readouterr().out == "1 site, 1 reference, 0 faults\n"


def test_references_of_an_application_are_not_those_of_the_suite(local, capsys):
    """They have names and units of their own, but the bounds, the partition and the file must be right."""
    mine = entry(test="heat_rate", figure="rate", unit="MLUP per day")
    file = local / "references" / "heat.yaml"
    file.write_text(json.dumps({"schema": 1, "test": "heat", "references": [mine]}))
    assert run(run_lint) == 0
    said = "not tests of the suite, but of applications, whose plumb.yaml has them: heat_rate\n"
    assert said in capsys.readouterr().out
    file.write_text(json.dumps({"schema": 1, "test": "other", "references": [{**mine, "partition": "gpu"}]}))
    assert run(run_lint) == 1
    said = capsys.readouterr().out
    assert "the file is for the tests of 'other'" in said
    assert "the site has no partition 'gpu'" in said


def test_an_application_called_as_the_suites_tests_is_known_beside_its_file(local, tmp_path, monkeypatch, capsys):
    put(local, entry(test="stream_mine", figure="rate", unit="MLUP per day"))
    assert run(run_lint) == 1
    assert "no test is called 'stream_mine'" in capsys.readouterr().out
    (tmp_path / "plumb.yaml").write_text(
        "application: stream\nprograms: {mine: {command: mine, figures: {rate: {wall: true}}}}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert run(run_lint) == 0
    assert "whose plumb.yaml has them: stream_mine" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "fault"), [
    ({"test": "stream_gone"}, "no test is called 'stream_gone'"),
    ({"test": "imb_pair"}, "the file is for the tests of 'stream'"),
    ({"unit": "GB/s"}, "unit 'GB/s' is none of"),
    ({"unit": "us"}, "figures in us are better when lower"),
    ({"unit": "msg/s"}, "triad is measured in MB/s, not in msg/s"),
    ({"better": "lower"}, "figures in MB/s are better when higher"),
    ({"partition": "gpu"}, "the site has no partition 'gpu'"),
    ({"value": 102600.0}, "102600 MB/s is above the physical limit 102400 MB/s"),
    ({"lower": None}, "no bound on the worse side"),
    ({"lower": 0}, "calls every second record worse"),
    ({"upper": 5.0}, "upper 5 is relative"),
    ({"lower": 0.05}, "references[0].lower: Expected `float` <= 0.0"),
    ({"upper": -0.05}, "references[0].upper: Expected `float` >= 0.0"),
    ({"lower": -1}, "references[0].lower: Expected `float` > -1.0"),
    ({"value": 0}, "references[0].value: Expected `float` > 0.0"),
    ({"value": -1.0}, "references[0].value: Expected `float` > 0.0"),
    ({"value": math.nan}, "references[0].value: Expected `float` > 0.0"),
    ({"upper": math.inf}, "inf is not a finite number"),
    ({"method": "guessed"}, "references[0].method: Invalid value 'guessed'"),
    ({"source": {}}, "references[0].source: Object missing required field `document`"),
    ({"method": "calibrated"}, "references[0].source.document: there is no such key: known: records, "),
    ({"note": "hello"}, "references[0].note: there is no such key: known: "),
])  # fmt: skip
def test_each_fault_is_found(local, capsys, change, fault):
    put(local, entry(**change))
    assert run(run_lint) == 1
    *found, last = capsys.readouterr().out.splitlines()
    assert any(fault in line for line in found), found
    assert all(line.startswith("FAULT ") and "stream.yaml" in line for line in found)
    assert last.endswith(f", {units.counted(len(found), 'fault')}")


@pytest.mark.parametrize("key", sorted(entry()))
def test_every_key_is_needed(local, key):
    broken = entry()
    del broken[key]
    put(local, broken)
    (fault,) = faults("local", {"stream_threads"})
    assert f"references[0]: Object missing required field `{key}`" in fault


@pytest.mark.parametrize("other", [{"value": 9000.0}, {"placement": {"name": "compact"}}])
def test_twins_an_entry_that_another_covers_and_split_families_are_faults(local, other):
    put(local, entry(), entry(**other))
    (fault,) = faults("local", {"stream_threads"})
    assert "matches the same records" in fault
    put(local, entry())
    (local / "references" / "more.yaml").write_text(FILE)
    (fault,) = faults("local", {"stream_threads"})
    assert "is for test 'stream' too" in fault


@pytest.mark.parametrize(
    ("placement", "value", "count"), [("pair:node", 24000.0, 0), ("pair:node", 26000.0, 1), ("pair:l3", 26000.0, 0)]
)
def test_a_link_limits_what_crosses_nodes(local, placement, value, count):
    file = local / "site.yaml"
    file.write_text(file.read_text().replace("{memory", "{link_gbit: 100, memory") + "    nodes: 2\n")
    put(local, entry(test="imb_pair", figure="bandwidth", params={"placement": placement}, value=value), name="imb")
    assert len(faults("local", {"imb_pair"})) == count


@pytest.mark.parametrize(("figure", "unit", "value", "count"), [
    ("rate", "GFlop/s", 446.77, 0),  # what Ulysses reached of 448
    ("rate", "GFlop/s", 449.0, 1),
    ("efficiency", "%", 99.7, 0),
    ("efficiency", "%", 100.7, 1),
    ("efficiency", "1", 1.2, 0),
    ("worst_bandwidth", "%", 50.0, 1),
    ("bandwidth_daxpy", "MB/s", 110000.0, 0),  # half of a sweep may come from the caches
    ("bandwidth_daxpy", "MB/s", 210000.0, 1),
])  # fmt: skip
def test_flops_shares_and_sweeps_have_limits(local, figure, unit, value, count):
    file = local / "site.yaml"
    file.write_text(file.read_text().replace("{memory", "{core_ghz: 2.8, flops_per_cycle: 8, memory"))
    params = {"working_set": 2 * 50 * 1024 * 1024}  # twice the caches of this topology
    put(local, entry(test="dgemm_node", figure=figure, unit=unit, value=value, params=params), name="dgemm")
    assert len(faults("local", {"dgemm_node"})) == count


@pytest.mark.parametrize(
    ("unit", "better", "count"),
    [("cycles", "higher", 1), ("ns", "higher", 1), ("GFlop/s", "lower", 1), ("1", "higher", 0), ("1", "lower", 0)],
)
def test_units_have_a_better_way_and_a_ratio_that_of_its_entry(local, unit, better, count):
    put(local, entry(test="barrier_pair", figure="ratio", unit=unit, better=better), name="barrier")
    found = faults("local", {"barrier_pair"})
    assert len(found) == count
    assert all(f"figures in {unit} are better when" in fault for fault in found)


def test_a_file_that_is_no_yaml_is_a_fault_and_the_rest_is_checked(local):
    put(local, entry(unit="us"))
    (local / "references" / "imb.yaml").write_text("schema: [1\n")
    first, second = faults("local", {"stream_threads"})[:2]
    assert "imb.yaml:" in first
    assert "stream.yaml" in second


def test_the_shipped_references_are_sound(monkeypatch):
    for name in site.names():
        assert faults(name, site.expected()) == []


def test_entries_overlap_where_one_record_can_match_both():
    assert typed().overlaps(typed(value=3.0))
    assert typed(placement={"name": "compact"}).overlaps(typed(placement={"threads": 2}))
    assert not typed(placement={"name": "compact"}).overlaps(typed(placement={"name": "scatter"}))
    assert not typed().overlaps(typed(figure="copy"))
