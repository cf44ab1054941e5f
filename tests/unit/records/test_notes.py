"""Notes of a site: written whole, read with what is damaged named, and shown where something changed."""

import json
import multiprocessing

import pytest
from samples import launch, record

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.records import notes, query, sources


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "results" / "local").mkdir(parents=True)
    return tmp_path / "results"


def put(results, values, site="local"):
    """A record a day from 2026-01-01 on, each of three launches of one of ``values``."""
    (results / site).mkdir(exist_ok=True)
    found = [
        record(id=f"{day:012x}", site=site, session=f"s{day}", time=f"2026-01-{1 + day:02d}T00:00:00.000Z",
               launches=[launch(order, value * (1 + order / 1000)) for order in range(3)])
        for day, value in enumerate(values)
    ]  # fmt: skip
    (results / site / "s.jsonl").write_text("".join(json.dumps(item) + "\n" for item in found))


def test_notes_are_no_records(results):
    put(results, [1.0])
    notes.add("local", "x", notes.moment("2026-01-01"))
    rows, damages = query.records()
    assert (len(rows), damages) == (1, [])
    assert sources.sites() == ["local"]


@pytest.mark.parametrize(("text", "moment"), [
    ("2026-11-22", "2026-11-22T00:00:00.000Z"),
    ("2026-11-22T10:30Z", "2026-11-22T10:30:00.000Z"),
    ("2026-11-22T10:30+02:00", "2026-11-22T08:30:00.000Z"),
])  # fmt: skip
def test_times(text, moment):
    assert notes.moment(text) == moment


@pytest.mark.parametrize(("words", "what"), [
    (["x", "--time", "yesterday"], "'yesterday' is not a time"),
    (["x", "--time", "0001-01-01T00:00+09:00"], "is not a time"),
    (["x", "--remove", "ab"], "a note and --remove"),
    (["--remove", "ab"], "no note 'ab'"),
    (["--time", "2026-01-01"], "--time goes with a note"),
    ([" \t "], "the text is empty"),
    (["x", "--time", "9999-01-01"], "is not a time"),
    (["x", "--time", "1969-12-31"], "is not a time"),
    (["x" * 501], "the text has 501 characters"),
    (["a\x1bb"], "characters that cannot be shown"),
    (["x", "--site", "elsewhere"], "no records of site 'elsewhere'"),
])  # fmt: skip
def test_what_is_refused(results, refused, words, what):
    put(results, [1.0])
    assert what in refused(2, "note", *words)
    assert not notes.file("local").exists()


def test_a_damaged_line_is_named_and_stays(results, capsys):
    put(results, [1.0])
    kept = notes.add("local", "one", notes.moment("2026-01-01"))
    with notes.file("local").open("ab") as stream:
        stream.write(b'{"half": \n\xff\n')
    found, damages = notes.read("local")
    assert [note.text for note in found] == ["one"]
    assert [damage.line for damage in damages] == [2, 3]
    notes.remove("local", kept.id)
    assert notes.file("local").read_bytes() == b'{"half": \n\xff\n'
    assert cli.main(["note"]) == 1
    assert "plumb: damaged note: " in capsys.readouterr().err


def _write(number):
    for turn in range(5):
        notes.add("local", f"{number}.{turn}", "2026-01-01T00:00:00.000Z")


def test_notes_of_many_at_once_are_all_kept(results):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(_write, range(4))
    found, damages = notes.read("local")
    assert {note.text for note in found} == {f"{number}.{turn}" for number in range(4) for turn in range(5)}
    assert damages == []


def test_a_note_that_cannot_be_written_is_one_line(results):
    (results / "local" / "notes.ndjson").mkdir()
    with pytest.raises(PlumbError, match="cannot read the notes"):
        notes.add("local", "x", notes.moment("2026-01-01"))


def test_history_names_what_happened_at_a_change(results, output_of):
    put(results, [10000.0 + day % 3 for day in range(14)] + [9000.0 + day % 3 for day in range(7)])
    notes.add("local", "before it all", notes.moment("2026-01-13"))
    notes.add("local", "new kernel", notes.moment("2026-01-14T12:00"))
    out = output_of(1, "history")
    assert "−10.0 % worse since 00000000000e, noted: new kernel" in out
    assert "before it all" in out.partition("what happened")[2]
    (alarm,) = json.loads(output_of(1, "history", "--json"))["alarms"]
    assert alarm["notes"] == ["new kernel"]


def test_a_gate_tells_the_newest_notes_of_its_site(results):
    put(results, [1.0])
    notes.add("local", "long ago", notes.moment("2020-01-01"))
    now = notes.store.now()
    for number in range(notes.SHOWN + 1):
        notes.add("local", f"event {number}", now)
    notes.add("local", "to come", notes.moment("2100-01-01"))
    told = notes.before("local", now)
    assert len(told) == notes.SHOWN
    assert all("event" in text for text in told)
    for elsewhere in ("nowhere", "../local", "\x00"):
        assert notes.before(elsewhere, now) == []


def test_a_gate_of_a_session_tells_what_was_noted_before_its_end(results, tmp_path, output_of):
    put(results, [10000.0, 10000.0])
    for day, text in (("2025-11-01", "long before"), ("2026-01-01T12:00", "new | kernel"), ("2026-01-03", "later")):
        notes.add("local", text, notes.moment(day))
    outputs = {ending: tmp_path / f"o.{ending}" for ending in ("json", "md", "html")}
    words = [word for file in outputs.values() for word in ("--output", str(file))]
    *_, told, closing = output_of(3, "gate", str(results / "local" / "s.jsonl"), *words).splitlines()
    assert told == "noted for 2026-01-01 12:00: new | kernel"
    assert closing.startswith("gate: INVALID")
    facts = {fact["name"]: fact["text"] for fact in json.loads(outputs["json"].read_text())["facts"]}
    assert [facts["note"], facts["site"]] == [told, "local"]
    assert {"baseline", "candidate", "measured"} <= facts.keys()
    assert outputs["md"].read_text().splitlines()[-1] == "- noted for 2026-01-01 12:00: new \\| kernel"
    assert '["note","noted for 2026-01-01 12:00: new | kernel"]' in outputs["html"].read_text()
