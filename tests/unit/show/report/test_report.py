"""The report's file: its numbers are the records', it needs nothing else, and nothing in a record can become markup."""

import base64
import copy
import hashlib
import json
import math
import random
import re
from html.parser import HTMLParser

import msgspec
import pieces
import pytest
import reports
from samples import barrier, launch, record, variant

from plumbline.base import units
from plumbline.extras.profiles import section as profiled
from plumbline.launch import profile_files
from plumbline.records.model import convert
from plumbline.show import pages
from plumbline.show.record import Placed, rank_map
from plumbline.show.report import data, history
from plumbline.show.report.curves import curves
from plumbline.show.report.matrices import matrices
from plumbline.show.summary import SEVERITY


class Page(HTMLParser):
    """Collects elements with their attributes, and the texts of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.inside = [], {"script": [], "style": [], "title": []}, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in self.texts:
            self.inside = tag
            self.texts[tag].append("")

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, text):
        if self.inside:
            self.texts[self.inside][-1] += text

    @property
    def data(self):
        return json.loads(self.texts["script"][0], parse_constant=pytest.fail)


def document(records, past=(), outcome=None, damages=()):
    records, rows = [convert(item) for item in records], [convert(item).row() for item in past]
    return data.document("local", records, rows, campaign=reports.CAMPAIGN, ended=outcome, damages=damages)


@pytest.fixture(scope="module")
def campaign():
    return reports.campaign()


@pytest.fixture(scope="module")
def whole(campaign):
    return pages.render(document(campaign, reports.history()))


@pytest.fixture(scope="module")
def seen(whole):
    return Page(whole)


def listed(found):
    """The rows of the overview by the id of their record."""
    (listing,) = pieces.blocks(pieces.section(found, "overview"), "listing")
    return {
        found["entries"][pieces.blocks(row["lines"], "link")[0]["entry"]]["id"]: [cells for cells, _ in row["lines"]]
        for row in listing["rows"]
    }


def drawer(found, item):
    """What the page shows of one record: head and body of its drawer."""
    return next(entry for entry in found["entries"] if entry["id"] == item["id"])


def samples(entry):
    """The values of each figure in the table of launches, one for each launch, and the launches' numbers."""
    table = pieces.called(entry["body"], "Launches of this record")
    names = [column["title"] for column in table["columns"]]
    rows = list(zip(*table["rows"], strict=True))
    return dict(zip(names, rows, strict=True))


def test_every_figure_launch_and_verdict_is_that_of_its_record(campaign, seen):
    page = seen.data
    rows = listed(page)
    assert len(page["entries"]) == len(rows) == len(campaign)
    for item in campaign:
        entry, own = drawer(page, item), rows[item["id"]]
        assert entry["head"][0]["verdict"] == own[0][0]["verdict"] == item["verdict"]
        said = pieces.blocks(pieces.blocks(entry["body"], "reasons"), "bullets")
        assert [reason for one in said for reason in one["pieces"]] == item["reasons"]
        shown = samples(entry)
        for figure in item["figures"]:
            assert list(shown[figure["name"]]) == [str(value) for value in figure["samples"]]
        if not item["reasons"]:
            values = [(row[5]["value"], row[6]) for row in own]
            units_of = [units.human(figure["value"], figure["unit"])[1] for figure in item["figures"]]
            assert values == [(figure["value"], unit) for figure, unit in zip(item["figures"], units_of, strict=True)]
        assert list(shown["launch"]) == [one["order"] for one in item["launches"]]
        assert ["disturbed" in pieces.text(notes) for notes in shown["notes"]] == [
            one["disturbed"] for one in item["launches"]
        ]
        assert pieces.blocks(entry["body"], "command")[0]["pieces"] == [f"plumb reproduce {item['id']}"]


def test_the_page_of_an_application_lacks_the_empty_sections_of_the_suite():
    state = {"name": "heat", "program": "fine", "commit": "c" * 40}
    own, of_suite = record(variant=variant(application=state)), record(id="2" * 12)
    names = [{section["id"] for section in document(records)["sections"]} for records in ([own], [own, of_suite])]
    assert {"curves", "collectives", "pairs"} <= names[1] - names[0]
    assert {"overview", "launches", "circumstances"} <= names[0]


def test_the_worst_stand_first(campaign):
    verdicts = [entry["head"][0]["verdict"] for entry in document(campaign)["entries"]]
    order = [SEVERITY.index(verdict) for verdict in verdicts]
    assert order == sorted(order)
    assert verdicts[0] == "invalid"


def test_a_curve_has_the_value_of_every_launch(campaign):
    item = next(item for item in campaign if item["variant"]["test"] == "imb_pair")
    found = {curve["metric"]: curve for curve in curves(convert(item), 7)}
    assert found["latency"]["entry"] == 7
    assert found["latency"]["benchmark"] == "IMB PingPong"
    assert found["latency"]["x"][:3] == [0, 1, 2]
    assert found["bandwidth"]["x"][0] == 1
    for metric, curve in found.items():
        for size, values in zip(curve["x"], curve["y"], strict=True):
            assert values == [
                next(
                    row["value"]
                    for row in one["measurements"]
                    if row["metric"] == metric and row["params"] == {"bytes": size}
                )
                for one in item["launches"]
            ]


def test_curves_of_two_modes_are_not_mixed():
    rows = [
        reports.measured("latency", size + shift, "us", "lower", bytes=size, mode=mode)
        for size in (1, 2)
        for mode, shift in (("aggregate", 0.1), ("non-aggregate", 0.5))
    ]
    found = curves(convert(record(launches=[launch(0, 1.0, measurements=rows)])), 0)
    assert {curve["mode"]: curve["y"] for curve in found} == {
        "aggregate": [[1.1], [2.1]],
        "non-aggregate": [[1.5], [2.5]],
    }


def test_a_matrix_has_every_pair_and_its_class(campaign):
    item = next(item for item in campaign if item["variant"]["test"] == "pairs")
    latency, bandwidth = matrices(convert(item), 0)
    assert (latency["metric"], bandwidth["metric"]) == ("latency", "bandwidth")
    assert latency["ends"] == [[rank, reports.cpu_of(rank), "node1"] for rank in range(reports.CORES)]
    assert latency["mode"] == "serial"
    assert len(latency["cells"]) == reports.CORES * (reports.CORES - 1) // 2
    measured = {
        (row["params"]["first"], row["params"]["second"]): row["params"]["class"]
        for row in item["launches"][0]["measurements"]
        if "first" in row["params"]
    }
    for first, second, kind, *values in latency["cells"]:
        assert latency["classes"][kind] == measured[first, second]
        assert len(values) == 3


def test_collectives_stand_beside_each_other():
    items = reports.collectives()
    found = document(items)
    shown = pieces.section(found, "collectives")
    (operations,) = pieces.blocks(shown, "choice")
    assert [name for name, _ in operations["options"]] == ["bcast"]
    small, large = pieces.rows(shown)
    assert (small[1], small[0], large[0]) == ("mpich", "8 B", "1 MiB")
    opened = pieces.blocks(pieces.blocks(shown, "table")[0]["rows"][0], "link")
    assert [found["entries"][one["entry"]]["title"] for one in opened] == ["kernels_bcast"] * 2 + [
        "osu_bcast (mpi4py)",
        "imb_bcast",
    ]
    assert {found["entries"][one["entry"]]["head"][1].split(",")[0] for one in opened} == {" mpich"}
    for item, column, metric in zip(items, (3, 6, 7), ("time", "latency", "time_avg"), strict=False):
        values = [
            row["value"]
            for one in item["launches"]
            for row in one["measurements"]
            if row["metric"] == metric and row["params"]["bytes"] == 8 and row["params"].get("in_place") != "yes"
        ]
        assert small[column] == units.digits(sorted(values)[1])
    assert "–" not in small
    assert large[7] == "–"  # not of this size
    ways = pieces.blocks(shown, "bullets")[0]["pieces"]
    assert [text.split()[0] for text in ways] == ["collective", "OSU", "IMB:"]
    assert "on rank 0" in ways[1]  # the port, not the C suite


@pytest.mark.parametrize(("version", "words"), [("mpi4py-4.1.2", "on rank 0"), ("7.5.2", "behind a barrier")])
def test_what_osu_measures_is_said_by_its_version(version, words):
    items = reports.collectives()[:2]
    items[1]["benchmark"]["version"] = version
    (ways,) = pieces.blocks(pieces.section(document(items), "collectives"), "bullets")
    (said,) = [text for text in ways["pieces"] if text.startswith("OSU")]
    assert words in said


def test_collectives_of_another_place_are_not_compared():
    items = reports.collectives()[:2]
    items[1]["placement"]["name"] = "numa"
    (table,) = pieces.blocks(pieces.section(document(items), "collectives"), "table")
    assert not {"OSU", "IMB"} & {column["title"] for column in table["columns"]}
    assert "Not measured" in pieces.text(pieces.section(document(items[1:]), "collectives"))


def test_a_pair_that_names_its_ranks_only():
    rows = [reports.measured("latency", 0.3, "us", "lower", first=0, second=1, **{"class": "unbound"})]
    found = matrices(convert(record(launches=[launch(0, 1.0, measurements=rows)])), 0)
    assert [(matrix["ends"], matrix["cells"]) for matrix in found] == [
        ([[0, None, None], [1, None, None]], [[0, 1, 0, 0.3]])
    ]


def test_what_is_not_valid_gives_no_picture(campaign):
    item = copy.deepcopy(next(item for item in campaign if item["variant"]["test"] == "imb_pair"))

    def drawn(found):
        return pieces.blocks(pieces.section(found, "curves"), "chart")

    assert drawn(document([item]))
    for change in ({"verified": False}, {"verdict": "invalid"}, {"reasons": ["why"]}, {"state": "interrupted"}):
        assert drawn(document([{**item, **change}])) == []
    item["launches"][1]["verified"] = False
    assert all(values[1] is None for values in curves(convert(item), 0)[0]["y"])


def test_a_launch_that_was_measured_again_counts_nowhere(campaign):
    item = copy.deepcopy(next(item for item in campaign if item["variant"]["test"] == "imb_pair"))
    item["launches"][0]["superseded"] = True
    item["figures"][0]["samples"] = item["figures"][0]["samples"][1:]
    shown = samples(document([item])["entries"][0])
    assert list(shown[item["figures"][0]["name"]]) == [None, *map(str, item["figures"][0]["samples"])]
    assert pieces.text(shown["notes"][0]) == "superseded: measured again"
    assert {len(values) for values in curves(convert(item), 0)[0]["y"]} == {len(item["launches"]) - 1}


def test_hostile_words_stay_words(campaign, seen):
    assert [tag for tag, _ in seen.elements].count("script") == 3
    assert not [tag for tag, _ in seen.elements if tag in ("img", "iframe", "object", "embed", "base", "form")]
    assert not [name for _, attributes in seen.elements for name in attributes if name.startswith("on")]
    assert not re.search("[<>&]", seen.texts["script"][0])  # parsers differ in what ends a script: none of it is there
    hostile = next(item for item in campaign if item["nodes"] == [reports.HOSTILE])
    entry = drawer(seen.data, hostile)
    assert pieces.blocks(entry["body"][0], "bullets")[0]["pieces"] == [reports.HOSTILE]
    (facts,) = [one for one in pieces.blocks(entry["body"], "facts") if one["caption"].startswith("Circumstances")]
    assert dict(facts["rows"])["partition"] == f"local:default on {reports.HOSTILE}"


def test_an_unescaped_embedding_would_be_seen():
    """The test above finds what it looks for."""
    text = '<script type="application/json">' + json.dumps({"a": reports.HOSTILE}) + "</script>"
    assert [tag for tag, _ in Page(text).elements].count("script") == 2


def test_the_title_is_escaped():
    seen = Page(pages.render(data.document("</title><b>", [convert(record())], campaign="<i>")))
    assert seen.texts["title"] == ["Plumbline report: </title><b> <i>"]


def test_the_policy_admits_exactly_what_is_in_the_page(seen):
    policy = next(a["content"] for tag, a in seen.elements if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    def admitted(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    assert rules["script-src"].split() == [admitted(text) for text in seen.texts["script"][1:]]
    assert rules["style-src"].split() == [admitted(text) for text in seen.texts["style"]]
    assert "unsafe" not in policy
    order = [a.get("http-equiv") for tag, a in seen.elements if tag in ("meta", "script", "style", "link")]
    assert order.index("Content-Security-Policy") == 1  # before everything that it rules; only the charset precedes


def test_nothing_is_loaded_from_elsewhere(seen):
    links = [a[name] for _, a in seen.elements for name in ("src", "href", "srcset", "action") if name in a]
    assert set(links) == {"data:,", "#main"}
    own = (pages.ASSETS / "style.css").read_text() + "".join(
        (pages.ASSETS / "js" / f"{name}.js").read_text() for name in pages.SCRIPTS
    )
    assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", own)


def test_scripts_never_parse_markup():
    for name in pages.SCRIPTS:
        text = (pages.ASSETS / "js" / f"{name}.js").read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\('style", text
        )


def test_every_script_is_in_the_page():
    assert sorted(file.stem for file in (pages.ASSETS / "js").glob("*.js")) == sorted(pages.SCRIPTS)


def test_the_library_is_the_one_that_was_vendored():
    folder = pages.LIBRARY.parent
    total, name = (folder / "SHA256SUMS").read_text().split()
    assert name == pages.LIBRARY.name
    assert hashlib.sha256(pages.LIBRARY.read_bytes()).hexdigest() == total
    library, version = (folder / "VERSION").read_text().split()
    assert f'version="{version}"' in pages.LIBRARY.read_text() or f'"{version}"' in pages.LIBRARY.read_text()
    assert f"npm pack {library}@{version}" in (folder / "README.md").read_text()
    assert "Apache License" in (folder / "LICENSE-echarts").read_text()


@pytest.mark.parametrize("text", ["a = '</script>'", "a = '</SCRIPT >'", "if (a <!--b) c()"])
def test_a_script_that_would_end_its_element_is_refused(text):
    with pytest.raises(ValueError, match="script"):
        pages._script_text(text)


def test_the_same_records_give_the_same_page(campaign, whole):
    shuffled = list(reports.campaign())
    random.Random(3).shuffle(shuffled)  # noqa: S311
    assert pages.render(document(shuffled, reports.history())) == whole
    assert pages.render(document(campaign[1:], reports.history())) != whole


def test_a_campaign_is_small(whole):
    assert len(whole.encode()) < 5_000_000


def test_numbers_that_are_none_become_words():
    item = record(verdict="invalid", reasons=["triad is not a finite number"])
    item["figures"][0] |= {"value": math.nan, "samples": [math.nan, math.inf, 1.0]}
    item["launches"][0]["measurements"][0]["value"] = math.nan
    found = Page(pages.render(document([item]))).data
    assert pieces.called(found["entries"][0]["body"], "Figures of")["rows"][0][1] == "nan"
    assert list(samples(found["entries"][0])["triad"]) == ["nan", "inf", "1.0"]


def test_history_finds_the_change():
    found = history.history(convert(item).row() for item in reports.history())
    judged = found["series"][0].judged
    past = reports.history()
    assert judged.series.index == [item["id"] for item in past]
    assert judged.series.values == [item["figures"][0]["value"] for item in past]
    assert [(alarm["direction"], alarm["index"]) for alarm in judged.alarms] == [("worse", past[25]["id"])]


def test_history_is_bounded_and_says_so(monkeypatch):
    rows = [convert(item).row() for item in reports.history()]
    other = [
        convert({**item, "id": f"{number:012x}", "partition": "other"}).row()
        for number, item in enumerate(reports.history()[:5])
    ]
    monkeypatch.setattr(history, "MAX_SERIES", 1)
    found = history.history([*rows, *other], most=30)
    assert found["left_out"] == 1
    (trend,) = found["series"]
    assert (trend.judged.count, trend.older) == (30, 10)
    assert trend.judged.series.index[-1] == rows[-1].id
    assert history.history(other[:1]) == {"series": [], "left_out": 0, "single": 1, "notes": []}


def test_the_rank_map_is_planned_against_seen():
    item = record()
    found = rank_map(convert(item))
    assert found == [Placed(0, None, "0-1", None)]
    seen = {
        "host": "node1", "rank": 0, "local_rank": 0, "usage": {},
        "threads": [{"name": "stream", "affinity": [cpu], "last_cpu": cpu} for cpu in (0, 1)],
        "memory": {"page_bytes": 4096, "nodes": {"0": 1000}, "freed_nodes": {"0": 1000, "1": 500}},
    }  # fmt: skip
    item["launches"][1]["ranks"] = [seen]
    assert rank_map(convert(item)) == [Placed(0, "node1", "0-1", "0-1", ["0", "1"], {"0": 8, "1": 2})]


def test_what_records_share_is_in_the_page_once(campaign):
    found = document(campaign)
    table = pieces.called(pieces.section(found, "circumstances"), "Stacks")
    assert len(table["rows"]) == len(reports.STACKS)
    hosts = {repr(item["host"]) for item in campaign}
    plans = {repr(item["plan"]) for item in campaign}
    assert len(found["shared"]) == len(hosts) + len(plans)
    for item in campaign:
        (facts,) = [one for one in pieces.blocks(drawer(found, item)["body"], "facts") if "more" in one]
        assert item["stack"]["sha256"][:12] in dict(facts["rows"])["manifest"]
        assert ["cpus online", item["host"]["cpus_online"]] in [list(row) for row in found["shared"][facts["more"]]]
        (cpus,) = pieces.blocks(drawer(found, item)["body"], "shared")
        planned = {cpu for cpu, label in found["shared"][cpus["number"]]["cpus"] if label}
        assert planned == {cpu for rank in item["plan"]["ranks"] for cpu in rank["cpus"]}


def test_skipped_cases_are_grouped_by_reason():
    cases = [{"state": "SKIP", "case": f"a {n}", "reason": "no two cores"} for n in range(3)]
    cases += [{"state": "FAIL", "case": "b", "reason": None}, {"state": "OK", "case": "c", "reason": None}]
    found = pieces.section(document([record()], outcome={"profile": "quick", "cases": cases}), "left-out")
    assert pieces.blocks(found, "heading")[-1]["pieces"] == ["4 of 5 cases without a valid record"]
    assert [[pieces.text(cell) for cell in row] for row in pieces.called(found, "Cases")["rows"]] == [
        ["1", "failed", "no reason given", "b"],
        ["3", "skipped", "no two cores", "a 0 a 1 a 2"],
    ]


def test_a_profile_on_the_page_is_the_stored_one():
    """Every pair with its class, every call; nothing is added or lost."""
    whole = reports.ring()
    shown = profiled.profiled([whole])
    pairs, sizes = pieces.blocks(shown, "chart")
    assert {tuple(row[0].split(" to ")) + tuple(row[2:4]) for row in pairs["rows"]} == {
        (str(rank.rank), str(peer.rank), 1, peer.sent_bytes) for rank in whole.ranks for peer in rank.peers
    }
    assert {row[1] for row in pairs["rows"]} == {"between nodes"}
    traffic, crossings, calls = (pieces.rows(shown, number) for number in range(3))
    assert traffic == [["between nodes", "16", str(16 * 524288), "100.0"]]
    assert sum(row[2] for row in sizes["rows"]) == sum(int(row[1]) for row in calls) == 16 * 27
    assert [row[1:] for row in crossings] == [["0", str(16 * 524288)], [str(16 * 524288), "0"]]
    assert [column["title"] for column in pieces.blocks(shown, "table")[1]["columns"][1:]] == ["L3", "between nodes"]


def test_a_page_has_the_pairs_with_most_bytes(monkeypatch):
    """And says how many it leaves out."""
    monkeypatch.setattr(profiled, "MAX_PAIRS", 10)
    pairs, _ = pieces.blocks(profiled.profiled([reports.ring()]), "chart")
    assert len(pairs["rows"]) == len(pairs["points"]) == 10
    assert "6 pairs with fewer bytes left out" in pairs["about"]


def test_the_newest_profile_of_each_test_and_stack(tmp_path, monkeypatch):
    """Of records that were profiled, where the file is there."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    rows = []
    for number, (stack, taken) in enumerate([("a", True), ("a", True), ("b", True), ("c", False), ("d", True)]):
        ident = f"{number:012x}"
        change = {"site": "local", "figures": [], "verdict": "invalid", "variant": variant(profiled=True, stack=stack)}
        bare = [{**launch(0, 1.0), "measurements": []}]
        item = record(id=ident, time=f"2026-01-0{number + 1}T00:00:00.000Z", launches=bare, **change)
        item["stack"]["name"] = stack
        rows.append(convert(item).row())
        if taken:
            empty = msgspec.structs.replace(reports.ring(), ranks=[]) if stack == "d" else reports.ring()
            profile_files.save("local", msgspec.structs.replace(empty, record=ident))
    assert [one.record for one in profiled.stored(rows)] == [f"{2:012x}", f"{1:012x}"]


def test_experiments_that_the_records_repeat_are_there_with_what_they_say():
    records = [barrier(267.0, "spin_cycles", placement="pair:l3")]
    shown = pieces.section(data.document("local", records), "labs")
    (row,) = pieces.rows(shown)
    assert row[0].startswith("R7 ")
    assert row[1] == "not measured here yet: plumb lab R7"
    assert row[2] == "plumb lab R7 --recorded"
    assert "Not measured" in pieces.text(pieces.section(data.document("local", []), "labs"))


def test_a_lab_is_in_the_report_of_a_campaign_that_does_not_repeat_it():
    row = convert(barrier(267.0, "spin_cycles", placement="pair:l3")).row()
    for experiment, shown in (("lab", True), ("gate", False), (None, False)):
        rows = [msgspec.structs.replace(row, experiment=experiment)]
        text = pieces.text(pieces.section(data.document("local", [], None, rows), "labs"))
        assert ("R7 " in text) == shown
