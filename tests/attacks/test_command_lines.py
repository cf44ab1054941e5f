"""Command lines that nobody meant, and records that steer a terminal: one line, a status that says so, no traceback."""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path

import fuzz
import pytest
import samples

from plumbline.commands import cli
from plumbline.records import store

TOOLS = Path(__file__).parents[2] / "build" / "tools"
#: commands that only read, or write where they are told
WORDS = {
    "list": ["--site", "local", "--test", "stream"],
    "show": ["last", "0123", "--json"],
    "diff": ["0123", "last", "zz"],
    "topology": ["--topology", "node:2 core:2 pu:1", "--placement", "core", "--ranks", "2", "--threads", "1"],
    "site": ["list", "check", "local", "init", "--site", "--dry-run", "--facts"],
    "lint": ["local"],
    "stack": ["list", "names", "show", "check", "openmpi", "--json", "externals", "--site"],
    "gate": ["--pairs", "PAIRS", "--better", "lower", "--tolerance", "0.01", "--must-detect", "1e400", "SESSION"],
    "outliers": ["--members", "--links", "PAIRS", "--better", "higher"],
    "history": ["PAIRS", "--better", "lower", "--test", "x"],
    "report": ["--output", "OUTPUT", "--campaign", "last", "--since", "2026-13", "--site", "local"],
    "compact": ["--site", "local", "--until", "2026-01"],
    "nodes": ["compare", "facts", "usable", "OUTPUT"],
    "calibrate": ["--site", "local", "--dry-run"],
    "launch": ["VARIANT", "--seed", "1", "--work", "OUTPUT", "--records"],
    "reproduce": ["zz"],
    "doctor": ["--json"],
    "ci": ["comment", "render", "--checkout", "OUTPUT"],
}
#: words for any of them
ANY = [
    "",
    "-",
    "--",
    "---",
    "-1",
    "1e999",
    "nan",
    "10" * 30,
    "≤",
    "\x1b[2J",
    "a\nb",
    "../..",
    "/dev/null",
    "--help",
    "-h",
    "*",
    "%s",
]
#: what would start programs or wait for a network
NEVER = {"--confirm", "install", "pack", "remove", "lock"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders with one record; the working directory is one of its own."""
    for name in ("results", "sites", "stacks", "build"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.setenv("PLUMB_TOOLS", str(TOOLS))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "local").mkdir()
    line = json.dumps(samples.record(launches=[samples.launch(0, 5.0)]))
    (tmp_path / "results" / "local" / "s.jsonl").write_text(line + "\n")
    (tmp_path / "pairs.csv").write_text("series,baseline,candidate\na,1.5,1.5\n")
    (tmp_path / "variant.json").write_text(json.dumps(samples.variant(site="nosuch")))
    return tmp_path


def line_of(chance: random.Random, command: str, place: Path) -> list[str]:
    """A command line: some of the command's own words in any order, with others between them."""
    names = {"PAIRS": "pairs.csv", "SESSION": "results/local/s.jsonl", "OUTPUT": "out", "VARIANT": "variant.json"}
    own = [str(place / names[word]) if word in names else word for word in WORDS[command]]
    words = [chance.choice(own if chance.random() < 0.7 else ANY) for _ in range(chance.randrange(7))]
    return [command, *words]


@pytest.mark.parametrize("command", WORDS)
def test_any_words_end_in_a_status_and_no_traceback(
    command: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = fuzz.draw(f"words of {command}")
    for _ in range(fuzz.COUNT):
        words = line_of(chance, command, place)
        assert not NEVER & set(words)
        try:
            status = cli.main(words)
        except SystemExit as ended:
            status = ended.code  # type: ignore[assignment]
        errors = capsys.readouterr().err
        assert status in (0, 1, 2, 3), words
        assert "please report it" not in errors, words
        assert "Traceback" not in errors, words
        if command in cli.OF_VERDICTS and errors.startswith("plumb: "):
            assert status == 3, words


@pytest.mark.parametrize(
    "text", ["\x1b[2J\x1b[31mPASS", "\x07", "\x9b31m", "\x00", "\u202eSSAP", "\r42 verified", "\x7f", "\x08\x08ok"]
)
def test_what_a_record_says_cannot_steer_the_terminal(
    text: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["list"], ["show", "last"], ["diff", "last", "last"]):
        document = samples.record(
            launches=[samples.launch(0, 5.0, verified=False, reasons=[f"launch: {text}"])],
            reasons=[text],
            nodes=[text],
            host={"kernel": text},
        )
        (place / "results" / "local" / "s.jsonl").write_text(json.dumps(document) + "\n")
        cli.main(words)
        shown = "".join(capsys.readouterr())
        assert not {char for char in text if not char.isprintable()} & set(shown), words


def test_a_damaged_record_cannot_steer_the_terminal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "results" / "local" / "s.jsonl").write_bytes(b'{"\x1b[2J": 1, "schema": "\x9b"}\n')
    assert cli.main(["list"]) == 1
    assert "\x1b" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_ctrl_c_while_a_command_is_loaded_is_one_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert cli.main([command]) == 130
    assert capsys.readouterr().err == "plumb: interrupted\n"


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_command_that_cannot_be_loaded_is_no_verdict(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: str) -> None:
        raise ImportError("libduckdb.so: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", broken)
    assert cli.main([command]) == (3 if command in cli.OF_VERDICTS else 2)
    assert capsys.readouterr().err.startswith("plumb: ImportError: libduckdb.so")


@pytest.mark.parametrize(
    "words",
    [["report", "--output", ""], ["gate", "--pairs", "pairs.csv", "--better", "lower", "--output", ""]],
    ids=["report", "gate"],
)
def test_a_file_without_a_name_is_one_line(words: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) in (2, 3)
    errors = capsys.readouterr().err
    assert errors.startswith("plumb: no file is named"), errors
    assert errors.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_no_error_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> int:
        raise PermissionError(13, "Permission denied", "/opt/checkout/build")

    monkeypatch.setattr("plumbline.commands.list.run", refuse)
    assert cli.main(["list"]) == 2
    assert capsys.readouterr().err.startswith("plumb: cannot continue: Permission denied (/opt/checkout/build): ")


def test_the_sample_is_a_record(place: Path) -> None:
    assert all(not isinstance(item, store.Damage) for item in store.read(place / "results" / "local" / "s.jsonl"))


@pytest.mark.parametrize("name", ["with blank", "with:colon", "with\ttab"])
def test_stacks_are_not_installed_where_their_programs_could_not_run(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--stacks", str(place / name), "stack", "install", "openmpi"]) == 2
    assert "the path of the stacks has a blank or a colon" in capsys.readouterr().err
    assert not (place / name).exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["hybrid", "--site", "nosuch"], "no records of site 'nosuch'"),
        (["hybrid", "--test", "nosuch"], "no record of a test whose name begins with 'nosuch'"),
        (["hybrid", "--campaign", "nosuch"], "no valid record of campaign 'nosuch'"),
        (["tune", "some", "--dry-run", "--profile-of", "ffff"], "no record 'ffff'"),
        (["tune", "some", "--dry-run", "--profile-of", "last"], "there is no profile"),
        (["site", "check", "\x1b[31mno\nsuch"], "'\\u001b[31mno such' cannot be the name of a site"),
        (["site", "check", "../sites"], "'../sites' cannot be the name of a site"),
        (["site", "check", "s" * 5000], f"'{'s' * 40}' cannot be the name of a site"),
        (["import", "/dev/zero"], "cannot read the performance log: it is a device"),
        (["history", "--series", "/dev/zero", "--better", "lower"], "cannot read the series: it is a device"),
        (["outliers", "--members", "/dev/zero", "--better", "lower"], "cannot read the values: it is a device"),
    ],
    ids=lambda value: "".join(char for char in str(value)[:50] if char.isalnum()),
)
def test_what_is_not_there_is_one_line(
    words: list[str], what: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == (3 if words[0] in cli.OF_VERDICTS else 2)
    errors = capsys.readouterr().err
    assert errors.startswith(f"plumb: {what}")
    assert errors.count("\n") == 1


def test_a_site_without_records_is_an_error_and_not_an_empty_list(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["list", "--site", "nosuch"]) == 2
    assert capsys.readouterr().err.startswith("plumb: no records of site 'nosuch'")


@pytest.mark.parametrize(
    "words",
    [
        ["gate", "--pairs", "pairs.csv", "--better", "lower", "--output", "pairs.csv"],
        ["gate", "--pairs", "pairs.csv", "--better", "lower", "--output", "build/../pairs.csv"],
        ["gate", "--pairs", "pairs.csv", "--better", "lower", "--output", "a.json", "--output", "a.json"],
        ["gate", "results/local/s.jsonl", "--output", "results/local/s.jsonl"],
        ["launch", "variant.json", "--records", "variant.json"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]),
)
def test_an_input_is_not_written_over(words: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file()}
    assert cli.main(words) in (2, 3)
    assert "this file is an output and is also used otherwise" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in place.rglob("*") if file.is_file()} == before


def test_what_a_killed_compaction_left_is_removed(place: Path) -> None:
    left = place / "results" / "local" / "compact" / ".2026-01.parquet.4711"
    left.parent.mkdir()
    left.touch()
    assert cli.main(["compact", "--site", "local"]) == 0
    assert sorted(file.name for file in left.parent.iterdir()) == ["2026-01.0001.parquet"]
