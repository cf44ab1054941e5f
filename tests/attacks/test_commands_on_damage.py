"""Whole commands on damaged tables, records and site files: a status, at most one line of error, never a traceback."""

import copy
import functools
import json
import operator
from pathlib import Path

import fuzz
import pytest
import samples
import yaml

from plumbline.commands import cli
from plumbline.records.model import seal
from plumbline.show.report import data

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parents[1] / "data"
STORED = [json.loads(line) for line in (DATA / "records" / "before-typed-model.jsonl").read_text().splitlines()]
PAIRS = b"series,baseline,candidate\n" + b"".join(b"a,%d.5,%d.25\n" % (10 + n % 7, 10 + n % 5) for n in range(60))
NODES = b"node,class,value\n" + b"".join(b"n%d,all,%d.5\n" % (n % 12, 100 + n % 9) for n in range(48))
LINKS = b"first,second,class,value\n" + b"".join(b"%d,%d,all,2.%d\n" % (n % 6, 6 + n % 5, n % 8) for n in range(60))
NUMBERS = b"series,index,value\n" + b"".join(b"a,%d,%d.5\n" % (n, 100 + n % 3) for n in range(40))
CHECKS = b"".join((ROOT / "tests/rates/example.screen.jsonl").read_bytes().splitlines(keepends=True)[:18])
#: command line, with FILE for the table; a sound table
TABLES = {
    "gate": (["gate", "--pairs", "FILE", "--better", "lower"], PAIRS),
    "gate, files": (["gate", "--pairs", "FILE", "--better", "higher", "--output", "o.json", "--output", "o.html"],
                    PAIRS),
    "nodes": (["outliers", "--members", "FILE", "--better", "higher"], NODES),
    "links": (["outliers", "--matrix", "FILE", "--better", "lower"], LINKS),
    "history": (["history", "--series", "FILE", "--better", "lower"], NUMBERS),
    "checks": (["screen", "--history", "FILE", "--output", "o.html"], CHECKS),
}  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("results", "sites", "stacks"):
        (tmp_path / name / "local").mkdir(parents=True)
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.setenv("PLUMB_TOOLS", str(ROOT / "build" / "tools"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words, capsys, item):
    """The exit status; anything that nobody expected fails the test with the input."""
    status = cli.main(words)
    out, err = capsys.readouterr()
    assert "please report it" not in err, f"{words}: {err}on {fuzz.shown(item)}"
    assert "Traceback" not in out + err, words
    assert status in (0, 1, 2, 3), words
    return status


@pytest.mark.parametrize("name", TABLES)
def test_a_damaged_table_has_a_verdict_or_one_error(name, place, capsys):
    words, sound = TABLES[name]
    file = place / "table.csv"
    words = [str(file) if word == "FILE" else word for word in words]
    file.write_bytes(sound)
    assert run(words, capsys, sound) in (0, 1, 2)
    for text in fuzz.spoiled_texts(f"table {name}", [sound]):
        file.write_bytes(text)
        run(words, capsys, text)


@pytest.mark.parametrize(("name", "number"), [("gate", b"11.5"), ("nodes", b"101.5"), ("history", b"101.5")])
def test_a_number_that_no_float_holds_is_one_error(name, number, place, capsys):
    words, sound = TABLES[name]
    (place / "table.csv").write_bytes(sound.replace(number, b"1" * 400))
    assert run(["table.csv" if word == "FILE" else word for word in words], capsys, number) == 3


def records():
    """Session files of two records, one of which has odd members and, where it had one, no seal."""
    sound = [*STORED, samples.record(launches=[samples.launch(order, 5.0) for order in range(3)])]
    for number, document in enumerate(fuzz.spoiled_documents("sessions", sound)):
        yield [document, {**sound[number % len(sound)], "id": f"{number:012x}"}]


#: commands that read records
READERS = (
    *("list", "show last", "show 0", "diff last 0", "history", "outliers", "history --json"),
    "gate results/local/s.jsonl",
)


@pytest.mark.parametrize("words", READERS)
def test_odd_records_are_shown_or_named(words, place, capsys):
    file = place / "results" / "local" / "s.jsonl"
    for lines in records():
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        run(words.split(), capsys, lines[0])


#: where a record holds what another version may write, and what: its types and its seal say nothing against it
ODD = [
    (("host", "devices"), {"devices": [], "ways": ["x"]}),
    (("host", "devices"), {"devices": [], "ways": [["X"]]}),
    (("host", "devices"), 5),
    (("hosts", 0, "devices"), {"devices": [{}], "ways": []}),
    (("launches", 1, "measurements", 0, "params"), {"bytes": "x"}),
    (("launches", 1, "measurements", 0, "params"), {"bytes": None}),
]


@pytest.mark.parametrize(("where", "value"), ODD)
def test_one_odd_record_is_named_and_the_rest_is_shown(where, value, place, capsys):
    lines = []
    for number in range(3):
        document = copy.deepcopy(STORED[0]) | {"id": f"{number:012x}", "campaign": "c" * 12}
        document["hosts"] = [copy.deepcopy(document["host"])]
        if number == 1:
            functools.reduce(operator.getitem, where[:-1], document)[where[-1]] = value
        document.pop("seal", None)
        lines.append(seal(json.dumps(document, separators=(",", ":"))))
    (place / "results" / "local" / "s.jsonl").write_text("\n".join(lines) + "\n")
    for _ in range(2):
        assert run(["report", "--output", "r.html"], capsys, value) in (0, 1)
        assert run(["publish", "pages"], capsys, value) in (0, 1)
    assert run(["show", "000000000001"], capsys, value) in (0, 1)
    assert [file.name for file in (place / "pages" / "systems").rglob("campaigns/*.html")] == [f"{'c' * 12}.html"]
    report = (place / "r.html").read_text()
    assert all(sound in report for sound in ("000000000000", "000000000002"))


def test_a_record_that_cannot_be_shown_is_named_each_time(place, capsys, monkeypatch):
    """Whatever is odd about it, and also where the page of the rest was made before."""
    lines = [json.dumps({**STORED[0], "id": f"{number:012x}", "campaign": "c" * 12}) for number in range(5)]
    (place / "results" / "local" / "s.jsonl").write_text("\n".join(lines) + "\n")
    sound = data.document

    def document(site, records, *rest, **more):
        assert all(record.id != "000000000003" for record in records), "an odd one"
        return sound(site, records, *rest, **more)

    monkeypatch.setattr(data, "document", document)
    named = "record 000000000003 cannot be shown: AssertionError: an odd one"
    for words in (["report", "--output", "r.html"], ["publish", "pages"], ["publish", "pages"]):
        assert cli.main(words) == 1
        assert capsys.readouterr().err.count(named) == 1, words
    assert "000000000004" in (place / "r.html").read_text()


@pytest.mark.parametrize("words", [["site", "check"], ["site", "list"], ["lint"]], ids=" ".join)
def test_odd_site_files_are_one_error_or_in_order(words, place, capsys):
    source = ROOT / "site-configs" / "gpc"
    folder = place / "sites" / "gpc"
    for file in source.rglob("*"):
        if file.is_file():
            (folder / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.relative_to(source)).write_bytes(file.read_bytes())
    for name in ("site.yaml", sorted(folder.glob("references/*.yaml"))[0].relative_to(folder).as_posix()):
        sound = (folder / name).read_text()
        for document in fuzz.spoiled_documents(f"{name} {words}", [yaml.safe_load(sound)]):
            (folder / name).write_text(yaml.safe_dump(document))
            run(words, capsys, document)
        (folder / name).write_text(sound)


def test_an_end_that_is_linked_only_to_ends_left_out_is_left_out_too(place, output_of):
    """Its level would be the median of nothing, and no JSON."""
    rows = [*LINKS.splitlines()[:13], b"2,8,all,2.4", b"1,9,all,2.5", b"2,10,all,2"]
    (place / "table.csv").write_bytes(b"\n".join(rows) + b"\n")
    (line,) = output_of(2, "outliers", "--matrix", "table.csv", "--better", "lower", "--json").splitlines()
    assert json.loads(line)["spread"] > 0


def test_a_text_with_half_of_a_character_is_damage(place, capsys):
    document = samples.record(partition="\ud800", launches=[])
    (place / "results" / "local" / "s.jsonl").write_text(json.dumps(document) + "\n")
    for words in (["list"], ["history"], ["show", "0"]):
        assert run(words, capsys, document) in (1, 2, 3)
