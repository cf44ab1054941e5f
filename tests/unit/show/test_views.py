"""What people see of records."""

import copy

import pytest
from samples import launch, record

from plumbline.base import units
from plumbline.base.table import sparkline
from plumbline.records.model import convert
from plumbline.show import diff, summary
from plumbline.show import record as show


@pytest.mark.parametrize(("better", "order"), [("higher", ["b", "a", "c"]), ("lower", ["a", "b", "c"])])
def test_ranked_lines_begin_with_the_best(better, order):
    """``c`` has the largest value and the smallest, but is not verified."""
    items = []
    for letter, value in (("a", 1000.0), ("b", 20000.0), ("c", 1.0 if better == "lower" else 1e6)):
        item = copy.deepcopy(record(id=letter * 12))
        item["figures"][0].update(value=value, better=better)
        items.append(convert(item | ({"verified": False, "reasons": ["moved"]} if letter == "c" else {})))
    found = [line[0] for line in summary.lines(items, ranked=True).splitlines()[2:]]
    assert found == order


@pytest.mark.parametrize("state", ["interrupted", "running"])
def test_a_record_cut_short_is_invalid_wherever_it_is_shown(state):
    cut = convert(record(state=state, launches=[launch(0, 10100.0)]))
    for item in (cut, cut.row()):
        header, _, row = summary.lines([item]).splitlines()
        assert row[header.index("verdict") :].split(maxsplit=1) == ["invalid", f"it is {state}, not complete"]
        assert row[header.index("state") :].startswith(f"{state} ")
        assert summary.closing([item]).endswith("1 invalid")
        assert not item.is_valid
    assert show.text(cut).splitlines()[-1] == f"verified, invalid: it is {state}, not complete"


def test_show_marks_launches_that_were_measured_again():
    item = record()
    item["launches"][1] |= {"superseded": True, "disturbed": True}
    item["launches"][1]["disturbance"] = {"disturbed": True, "causes": ["steal 5 %"], "figures": {}}
    marked = [line for line in show.text(convert(item)).splitlines() if "superseded" in line]
    assert len(marked) == 1
    assert marked[0].endswith("superseded: measured again; disturbed: steal 5 %")
    assert "superseded" not in show.text(convert(record()))


def test_show_prints_a_remark_once_and_names_the_launches_that_are_not_all():
    item = record()
    library, slow = "BLAS: OpenBLAS 0.3.34; kernels for Haswell", "46 % of the measured peak"
    for entry in item["launches"]:
        entry["remarks"] = [library]
    item["launches"][1]["remarks"].append(slow)
    lines = show.text(convert(item)).splitlines()
    assert lines.count(library) == 1
    assert [line for line in lines if slow in line] == [f"launch {item['launches'][1]['order']}: {slow}"]


def test_show_says_that_an_optional_figure_is_not_reported():
    item = record()
    cycles = {"name": "cycles", "metric": "cycles", "where": {}, "optional": True}
    item["variant"] = {**item["variant"], "figures": [*item["variant"]["figures"], cycles]}
    (line,) = [line for line in show.text(convert(item)).splitlines() if line.startswith("cycles")]
    assert "not reported here" in line
    item["figures"].append({**item["figures"][0], "name": "cycles"})
    assert "not reported here" not in show.text(convert(item))


def test_diff_finds_circumstances_and_ignores_ids_and_load():
    other = copy.deepcopy(record(id="f" * 12, time="2026-02-02T00:00:00.000Z"))
    other["host"]["load"] = [9.0, 9.0, 9.0]
    assert diff.differences(convert(record()), convert(other)) == []
    other["host"]["governor"] = "powersave"
    other["stack"]["mpi"]["version"] = "5.0.8"
    other["variant"] |= {"slow_on_purpose": True, "threads": None, "arguments": ["--size", "a b"]}
    assert diff.differences(convert(record()), convert(other)) == [
        ("stack.mpi.version", "5.0.11", "5.0.8"),
        ("variant.arguments", "none", "--size 'a b'"),
        ("variant.threads", "2", "–"),
        ("host.governor", "performance", "powersave"),
        ("variant.slow_on_purpose", "absent", "yes"),
    ]
    assert "1.000" in diff.text(convert(record()), convert(other))


def test_diff_of_a_record_just_made_and_one_that_was_read_finds_no_tuples():
    made, read = convert(record()), convert(record())
    made.host["devices"] = {"ways": (("X",),), "devices": ({"label": "NIC0", "nodes": (0,)},)}
    read.host["devices"] = {"ways": [["X"]], "devices": [{"label": "NIC0", "nodes": [0]}]}
    assert diff.differences(made, read) == []
    read.host["devices"]["devices"][0]["label"] = "NIC1"
    assert diff.differences(made, read) == [("host.devices.devices[0].label", "NIC0", "NIC1")]


def test_diff_shows_settings_as_they_were_seen():
    def with_settings(asked, seen):
        document = record()
        for one in document["launches"]:
            one["settings"] = {"asked": asked, "seen": seen}
        return convert(document)

    first = with_settings({"limit": "64", "cmaa": "0"}, {"limit": "64"})
    assert diff.differences(first, with_settings({"limit": "128"}, {"limit": "128"})) == [
        ("settings.limit", "64", "128"),
        ("settings.cmaa", "asked for 0, not seen", "absent"),
    ]
    assert ("settings.limit", "64", "absent") in diff.differences(first, convert(record()))
    assert "settings     limit 64, cmaa asked for 0, not seen\n" in show.text(first)


def test_diff_names_a_library_that_is_another_one():
    library = {"path": "/opt/libmpi.so.40", "build_id": "", "bytes": 900, "modified_ns": 5}
    first = convert(record(loaded=[library]))
    assert diff.differences(first, convert(record(loaded=[{**library, "bytes": 901}]))) == [
        ("loaded./opt/libmpi.so.40", "900 bytes, 5", "901 bytes, 5")
    ]
    known = {**library, "build_id": "ab" * 20}
    again = convert(record(loaded=[{**known, "modified_ns": 6}]))
    assert diff.differences(convert(record(loaded=[known])), again) == [], "installed again, the same build"
    assert diff.differences(first, convert(record())) == [], "an early record"


def test_sparkline():
    assert sparkline([1, 2, 3]) == "▁▅█"
    assert sparkline([5, 5]) == "▄▄"


def test_units_for_people():
    assert units.human(12345.0, "MB/s") == ("12.35", "GB/s")
    assert units.human(0.178, "us") == ("0.178", "us")
    assert units.human(2.5e6, "msg/s") == ("2.500", "Mmsg/s")
    assert [units.human_seconds(value) for value in (45, 200, 7500)] == ["45 s", "3 min 20 s", "2 h 05 min"]
