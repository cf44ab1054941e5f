"""``plumb publish``: which pages are made, which are kept, and what is never touched."""

import json
import re
import signal
import subprocess
import sys

import pieces
import pytest
import reports
from published import shown
from samples import launch, record

from plumbline.commands import cli
from plumbline.extras.publish import command
from plumbline.records import compact, index, notes, outcome
from plumbline.show.pages import BESIDE

CAMPAIGN = "20260105T000000Z-abcdef"


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    return tmp_path / "results"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "pages"


def put(results, name, *records, site="local"):
    (results / site).mkdir(parents=True, exist_ok=True)
    (results / site / f"{name}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in records))


def numbered(number, campaign=None, **changes):
    time = f"2026-01-{number:02d}T00:00:00.000Z"
    return record(id=f"{number:012x}", session=f"s{number}", time=time, campaign=campaign or f"c{number}", **changes)


def publish(root):
    return cli.main(["publish", str(root)])


def pages(root):
    return {str(file.relative_to(root)): file.stat().st_mtime_ns for file in root.rglob("*.html")}


def test_every_page_is_there_and_every_link_leads_to_one(results, root, capsys):
    reports.write(results)
    notes.add("local", reports.HOSTILE.replace("\u2028", " "), notes.moment("2025-12-13T06:00"))
    assert publish(root) == 0
    assert capsys.readouterr().out.splitlines()[0] == "1 system, 41 campaigns"
    for file in root.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        for target in re.findall(r'"(?:href|machine)": ?"([^"]+)"', json.dumps(shown(file))):
            assert (file.parent / target).is_file(), f"{file}: {target}"
        for target in [
            *re.findall(r' (?:src|href)="([^"#][^"]*)"', text),
            *(to for _, to in shown(file).get("trail", [])),
        ]:
            assert target == "data:," or (file.parent / target).is_file(), f"{file}: {target}"
    series = shown(root / "systems/local/tests/stream_threads.html")
    charts = pieces.blocks(series, "chart")
    for chart in charts:
        for row, target in zip(chart["rows"], chart["targets"], strict=True):
            if target is None:  # of an early campaign, which has no page
                continue
            page, _, record = target.partition("#record-")
            assert record == row[2]
            assert (root / "systems/local/tests" / page).is_file()
    assert sum(len(chart["points"]) for chart in charts) == sum(len(chart["rows"]) for chart in charts)
    assert len([*filter(None, (target for chart in charts for target in chart["targets"]))]) > command.NEWEST
    assert sorted(len(chart["rows"]) for chart in charts) == [*[1] * 29, 41]


def test_the_page_of_a_campaign_has_its_records_and_no_history(results, root):
    reports.write(results)
    publish(root)
    report = shown(root / f"systems/local/campaigns/{CAMPAIGN}.html")
    assert len(report["entries"]) == len(reports.campaign())
    assert "history" not in [one["id"] for one in report["sections"]]
    heading = pieces.blocks(pieces.section(report, "left-out"), "heading")[1]
    assert heading["pieces"] == ["5 of 8 cases without a valid record"]


def test_labs_and_gates_have_lists_of_their_own_and_are_no_history(results, root, capsys):
    put(results, "s1", numbered(1))
    put(results, "s2", numbered(2, experiment="lab"))
    put(results, "s3", {**numbered(3), "campaign": None, "side": "baseline"})
    outcome.write("local", "c1", "quick", [("OK", "a", None)])
    outcome.write("local", "c2", outcome.LAB, [("OK", "a", None)], outcome.CHOSEN)
    assert publish(root) == 0
    assert capsys.readouterr().out.splitlines()[0] == "1 system, 1 campaign"
    assert pieces.rows(shown(root / "index.html"))[0][2] == "2026-01-01 00:00"
    system = shown(root / "systems/local/index.html")
    kinds = {name: pieces.rows(pieces.section(system, name))[0][1:3] for name in ("campaigns", "parts", "others")}
    assert kinds == {"campaigns": ["c1", "quick"], "parts": ["c2", "lab"], "others": ["gate", "s3"]}
    assert (root / "systems/local/campaigns/c2.html").is_file()
    for words, points in (([], 1), (["--experiments"], 3)):
        assert cli.main(["publish", str(root), *words]) == 0
        series = pieces.blocks(shown(root / "systems/local/tests/stream_threads.html"), "picker")[0]["options"]
        assert series[0][0][1] == points


def test_after_the_first_campaign_every_page_has_values(results, root):
    put(results, "s1", *(item for item in reports.campaign() if item["verdict"] != "invalid"))
    assert publish(root) == 0
    (line,) = pieces.rows(shown(root / "index.html"))
    assert line[3].startswith("No: slow memory in most tests: ")
    system = shown(root / "systems/local/index.html")
    assert pieces.text(system["head"]).count(line[3]) == 1
    newest = {row[0]: row[1] for row in pieces.rows(pieces.section(system, "tests"))}
    times = [item["figures"][0]["value"] for item in reports.campaign() if item["variant"]["test"] == "imb_pair"]
    assert newest["imb_pair"] == f"latency {min(times):.3f} us … {max(times):.3f} us"
    series = pieces.blocks(shown(root / "systems/local/tests/imb_pair.html"), "picker")[0]["options"]
    assert next(cells[1:4] for cells, _ in series) == [1, f"{times[0]:.3f}", "us"]


def test_a_test_without_a_figure_has_no_newest_one(results, root):
    put(results, "s1", numbered(1, verified=False, verdict="invalid", figures=[], reasons=["rank 0 moved"]))
    assert publish(root) == 0
    system = shown(root / "systems/local/index.html")
    assert pieces.rows(pieces.section(system, "tests"))[0][1] == "–"


def test_nothing_hostile_is_markup_in_any_page(results, root):
    reports.write(results)
    publish(root)
    for file in root.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert "window.broken" not in text
        assert f'http-equiv="Content-Security-Policy" content="{BESIDE}"' in text
        assert re.findall("<script[^>]*>", text)[1:] == re.findall(
            r'<script src="[^"]+/assets/[a-z]+-[0-9a-f]+\.js">', text
        ) or (file == root / "index.html")


def test_the_newest_campaigns_get_pages_and_those_that_have_one_keep_it(results, root, output_of, monkeypatch):
    monkeypatch.setattr(command, "NEWEST", 2)

    def published(*words):
        text = output_of(0, "publish", *words, str(root))
        return sorted(file.stem for file in root.rglob("campaigns/*.html")), text

    for number in range(1, 5):
        put(results, f"s{number}", numbered(number))
    for number in range(11, 14):
        put(results, f"s{number}", numbered(number, campaign=f"lab{number}", experiment="lab"))
        outcome.write("local", f"lab{number}", "lab", [], part="chosen")
    pages, text = published()
    assert (pages, "3 earlier campaigns without a page: --all makes it" in text) == (
        ["c3", "c4", "lab12", "lab13"],
        True,
    )
    assert '"c1"' in json.dumps(shown(root / "systems/local/index.html"))
    put(results, "s5", numbered(5))
    assert published()[0] == ["c3", "c4", "c5", "lab12", "lab13"]
    pages, text = published("--all")
    assert (pages[:5], "without a page" in text) == (["c1", "c2", "c3", "c4", "c5"], False)
    assert published()[0] == pages


def test_what_did_not_change_is_not_made_again(results, root, capsys):
    for number in range(1, 4):
        put(results, f"s{number}", numbered(number))
    assert publish(root) == 0
    before = pages(root)
    assert publish(root) == 0
    assert pages(root) == before
    assert "0 pages rendered, 7 unchanged, 0 files removed" in capsys.readouterr().out
    put(results, "s4", numbered(4))
    assert publish(root) == 0
    after = pages(root)
    kept = {path for path in before if after[path] == before[path]}
    assert kept == {*(f"systems/local/campaigns/c{number}.html" for number in (1, 2, 3)), "systems/local/machine.html"}
    assert set(after) - set(before) == {"systems/local/campaigns/c4.html"}


@pytest.mark.parametrize(("change", "made"), [
    (lambda results: notes.add("local", "x", notes.moment("2026-01-01")), {"tests/stream_threads", "index"}),
    (lambda results: outcome.write("local", "c1", "quick", []), {"campaigns/c1", "index"}),
    (lambda results: put(results, "s1", numbered(1, verdict="invalid", reasons=["why"], figures=[])),
     {"campaigns/c1", "tests/stream_threads", "index"}),
])  # fmt: skip
def test_a_page_is_made_again_when_one_of_its_inputs_changes(results, root, change, made):
    for number in (1, 2):
        put(results, f"s{number}", numbered(number))
    publish(root)
    before = pages(root)
    change(results)
    publish(root)
    again = {path.removeprefix("systems/local/") for path, time in pages(root).items() if before[path] != time}
    assert again - {"index.html"} == {f"{name}.html" for name in made} - {"index.html"}
    assert ("index.html" in again) == ("index" in made)


def test_a_page_that_was_removed_is_made_again_and_one_of_the_past_goes(results, root):
    put(results, "s1", numbered(1))
    put(results, "s2", numbered(2))
    publish(root)
    (root / "systems/local/campaigns/c1.html").unlink()
    (results / "local" / "s2.jsonl").unlink()
    (root / "assets" / "report-000000000000.js").write_text("old")
    assert publish(root) == 0
    assert sorted(file.name for file in (root / "systems/local/campaigns").iterdir()) == ["c1.html"]
    assert not (root / "assets" / "report-000000000000.js").exists()


def test_another_version_makes_all_pages_again(results, root, monkeypatch, capsys):
    put(results, "s1", numbered(1))
    publish(root)
    monkeypatch.setattr("plumbline.extras.publish.command._generator", lambda shared: "another")
    publish(root)
    assert "5 pages rendered, 0 unchanged" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["../../../escape", "a/b", ".hidden", "x" * 200, "<b>", "ü", "index.html\n"])
def test_odd_names_stay_inside_the_folder(results, root, tmp_path, name):
    odd = numbered(1, campaign=name)
    odd["variant"] = {**odd["variant"], "test": name}
    put(results, "s1", odd)
    before = set(tmp_path.iterdir())
    assert publish(root) == 0
    assert set(tmp_path.iterdir()) - before == {root}
    files = [file for file in root.rglob("*.html") if file.name not in ("index.html", "machine.html")]
    assert sorted(file.parent.name for file in files) == ["campaigns", "tests"]
    assert all(re.fullmatch(r"[0-9a-f]{20}\.html", file.name) for file in files)


def test_a_folder_of_others_is_left_alone(results, root, refused):
    put(results, "s1", numbered(1))
    root.mkdir()
    (root / "mine.txt").write_text("mine")
    assert "was not made by Plumbline" in refused(2, "publish", root)
    assert [file.name for file in root.iterdir()] == ["mine.txt"]


def test_damage_is_named_and_the_rest_is_published(results, root, capsys):
    without_pages = {"host": "n1", "rank": 0, "local_rank": 0, "threads": [], "memory": {}, "usage": {}}
    put(results, "s1", numbered(1))
    put(results, "s2", numbered(2, launches=[launch(0, 100.0, ranks=[without_pages])]))
    (results / "local" / "s3.jsonl").write_text('{"half": \n')
    outcome.file("local", "c1").write_text("{}")
    assert publish(root) == 1
    said = capsys.readouterr().err
    assert "damaged record: " in said
    assert "damaged outcome" in said
    assert "no page campaigns/c2.html: " in said
    lines = pieces.section(shown(root / "systems/local/index.html"), "campaigns")
    assert [row[1] for row in pieces.rows(lines)] == ["c2", "c1"]
    assert [link["href"] for link in pieces.blocks(lines, "link")] == ["campaigns/c1.html"]


def test_nothing_to_publish_and_a_damaged_state(results, root, refused):
    assert "no records yet" in refused(2, "publish", root)
    put(results, "s1", numbered(1))
    publish(root)
    (root / "pages.json").write_text('{"pages": {"a": 1}}')
    assert "damaged state of the pages" in refused(2, "publish", root)


def test_a_state_cannot_name_files_of_others(results, root, tmp_path):
    put(results, "s1", numbered(1))
    publish(root)
    (tmp_path / "mine.txt").write_text("mine")
    known = json.loads((root / "pages.json").read_text())
    for path in ("../mine.txt", str(tmp_path / "mine.txt")):
        known["pages"][path] = {"inputs": "", "facts": {}}
    (root / "pages.json").write_text(json.dumps(known))
    assert publish(root) == 0
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_the_side_by_side_page_is_of_newest_campaigns_and_valid_records(results, root, capsys):
    """An invalid record is not a side of it; a campaign more of one system makes it again; one system has none."""
    put(results, "s1", numbered(1))
    publish(root)
    assert not (root / "compare.html").exists()
    assert "side by side" not in pieces.text(shown(root / "index.html")["sections"])
    broken = {"verdict": "invalid", "reasons": ["why"], "figures": []}
    put(results, "s2", numbered(2, site="other", **broken), site="other")
    publish(root)
    assert not (root / "compare.html").exists()
    put(results, "s3", numbered(3, site="other"), site="other")
    publish(root)
    first = pieces.rows(shown(root / "compare.html"))[0]
    put(results, "s4", numbered(4))
    publish(root)
    assert first == ["newest campaign", "c1, 2026-01-01", "c3, 2026-01-03"]
    assert pieces.rows(shown(root / "compare.html"))[0] == ["newest campaign", "c4, 2026-01-04", "c3, 2026-01-03"]
    before = pages(root)
    capsys.readouterr()
    publish(root)
    assert pages(root) == before
    (results / "other" / "s3.jsonl").unlink()
    publish(root)
    assert not (root / "compare.html").exists()


def test_of_compacted_records_only_those_of_the_campaign_are_read_again(results, root, monkeypatch):
    for number in range(1, 4):
        put(results, f"s{number}", numbered(number))
    compact.compact("local", remove=True)
    read, asked = compact.lines, []

    def lines(part, wanted=None):
        asked.append(wanted)
        return read(part, wanted)

    monkeypatch.setattr(index, "SETTLED", 0)
    monkeypatch.setattr(compact, "lines", lines)
    assert publish(root) == 0
    assert asked == [None, {"s1.jsonl"}, {"s2.jsonl"}, {"s3.jsonl"}]
    for number in range(1, 4):
        (entry,) = shown(root / f"systems/local/campaigns/c{number}.html")["entries"]
        assert entry["id"] == f"{number:012x}"


def test_what_a_killed_publication_left_is_removed_by_the_next(results, root, tmp_path):
    """A kill while a page is written leaves it beside the page, for whoever reads the folder too."""
    put(results, "s1", numbered(1))
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom plumbline.commands import cli\n"
        "rename, left = Path.replace, [int(sys.argv[1])]\n"
        "def killed(one, other):\n"
        "    left[0] -= 1\n"
        "    return rename(one, other) if left[0] else os.kill(os.getpid(), signal.SIGKILL)\n"
        "Path.replace = killed\n"
        "sys.exit(cli.main(['publish', sys.argv[2]]))\n"
    )
    left = set()
    for number in (2, 4, 3):
        done = subprocess.run([sys.executable, "-c", code, str(number), str(root)], check=False, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        left |= {file for file in root.rglob(".*.*") if file.name != ".plumbline"}
    assert len(left) == 3
    assert any(file.parent.name != "assets" for file in left)
    kept = [root / ".htaccess", root / ".notes.7"]
    for file in kept:
        file.write_text("of the site")
    assert publish(root) == 0
    assert sorted(file for file in root.rglob(".*") if file.name != ".plumbline") == sorted(kept)
