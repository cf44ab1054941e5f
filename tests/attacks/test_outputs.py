"""What a command writes replaces no record, note or profile, and no file that the command reads, by any name of it."""

import argparse
import json
import re
import shutil
from pathlib import Path

import pytest
import samples

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.commands import cli, completion
from plumbline.launch import profile_files
from plumbline.launch.profiles import Profile
from plumbline.records import model, notes, sources

#: every argument that names something to write, after words with which its command can be understood
WRITTEN = {
    ("accept", "--archive"): "accept contract.yaml --recorded",
    ("accept", "--output"): "accept contract.yaml --recorded",
    ("advice", "--output"): "advice report",
    ("check", "--write"): "check --class node.class",
    ("bisect", "--output"): "bisect --resume absent",
    ("ci", "--checkout"): "ci gitlab --tags a --stack s",
    ("compare", "--output"): "compare openmpi mpich",
    ("export", "--output"): "export --format csv",
    ("gate", "--output"): "gate --pairs pairs.csv --better lower",
    ("lab", "--output"): "lab R7 --recorded",
    ("lab", "--handout"): "lab R7 --recorded",
    ("launch", "--records"): "launch variant.json",
    ("nodes", "folder"): "nodes facts",
    ("prove", "--output"): "prove true",
    ("publish", "folder"): "publish",
    ("report", "--output"): "report",
    ("scale", "--output"): "scale true",
    ("screen", "--output"): "screen",
    ("stack", "--to"): "stack push spack:openmpi",
    ("stack", "file"): "stack pack",
    ("tune", "--output"): "tune openmpi --screen",
    ("why", "--output"): "why --resume absent",
}
OF_APPLICATIONS = "application bisect ci compare gate history profile run scale tune why"
#: every other argument that is a path: it is only read, or a folder for the work whose entries have names of their own
OTHERS = {
    *(("doctor", "--facts"), ("import", "logs"), ("history", "--series"), ("launch", "variant"), ("nodes", "folder")),
    *(("gate", name) for name in ("records", "--pairs", "--rules", "--work", "--resume")),
    *(("outliers", name) for name in ("--members", "--matrix")),
    *(("accept", name) for name in ("contract", "--verify", "--offered", "--work")),
    *((name, word) for name in ("bisect", "neighbours", "scale", "tune", "why") for word in ("--work", "--resume")),
    ("neighbours", "--application"),
    *(("ci", "--home"), ("launch", "--work"), ("site", "--facts"), ("stack", "--from"), ("tune", "--from")),
    *(("screen", "--history"), ("prove", "--work"), ("advice", "--work"), ("advice", "file")),
    *(("stack", name) for name in ("--mpicc", "--mpirun", "--osu", "--imb", "--stream")),
    *(("check", "--class"), ("check", "--state"), ("check", "--measured")),
    *((name, "--application") for name in OF_APPLICATIONS.split()),
}
#: how what is written may be called, of the fixture's files
TARGETS = """
results/local/s.jsonl results/local/../local/s.jsonl link hard-link elsewhere.jsonl elsewhere.ndjson elsewhere.json
backup/compact/2026-01.0001.parquet backup/compact/2026-01.0001.jsonl.gz linked-results/new.jsonl
results/local/notes.ndjson results/local/profiles/0123456789ab.json results/local/compact/new.parquet
results/local/compact/new.jsonl.gz results/local/c.outcome.json results/local/.notes.lock
"""
REFUSED = re.compile(r"plumb: an output may not replace measured data: .+ \(.+\): name another file\n")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a record, a note and a profile: among the results, by other names, and in copies."""
    for folder in ("results", "sites", "stacks"):
        monkeypatch.setenv(f"PLUMB_{folder.upper()}", str(tmp_path / folder))
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "results" / "local"
    own.mkdir(parents=True)
    (tmp_path / "backup" / "compact").mkdir(parents=True)
    record = model.encode([model.convert(samples.record(launches=[samples.launch(0, 5.0)]))])
    (own / "s.jsonl").write_text(record)
    notes.add("local", "rain", "2026-01-01T00:00:00.000Z")
    words = {"variant": "v", "stack": "openmpi", "placement": "core", "time": "2026-01-01T00:00:00.000Z"}
    profile_files.save("local", Profile(record="0123456789ab", command=[], ranks=[], missing=[], places=[], **words))
    (tmp_path / "elsewhere.jsonl").write_text(f"\n{record}")
    shutil.copy(own / "notes.ndjson", tmp_path / "elsewhere.ndjson")
    shutil.copy(own / "profiles" / "0123456789ab.json", tmp_path / "elsewhere.json")
    for ending in ("parquet", "jsonl.gz"):
        (tmp_path / "backup" / "compact" / f"2026-01.0001.{ending}").write_bytes(b"PAR1")
    (tmp_path / "link").symlink_to(own / "s.jsonl")
    (tmp_path / "hard-link").hardlink_to(own / "s.jsonl")
    (tmp_path / "linked-results").symlink_to(own)
    (tmp_path / "pairs.csv").write_text("series,baseline,candidate\na,1.5,1.5\n")
    (tmp_path / "variant.json").write_text(json.dumps(samples.variant(site="nosuch")))
    return tmp_path


def state(place):
    return {file: (file.read_bytes(), file.stat().st_ino) for file in place.rglob("*") if file.is_file()}


def arguments():
    """The arguments of all commands, those that every command has excepted."""
    for command in cli.COMMANDS:
        parser = cli._parser([command])
        (table,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        yield from ((command, action) for action in completion._actions(table.choices[command]))


def name(action):
    return action.option_strings[0] if action.option_strings else action.dest


def test_every_argument_that_names_a_path_is_known_to_be_written_or_not():
    """A new one is an :class:`Output`, with words in :data:`WRITTEN`, or has to be named in :data:`OTHERS`."""
    outputs = {
        (command, name(action))
        for command, action in arguments()
        if isinstance(action.type, type) and issubclass(action.type, files.Output)
    }
    assert outputs == WRITTEN.keys()
    paths = {(command, name(action)) for command, action in arguments() if action.type is Path}
    assert paths == OTHERS
    words = re.compile(r"(FILE|PATH|PLACE|DIR|FOLDER)\b")
    texts = {(command, name(action)) for command, action in arguments() if words.search(str(action.metavar or ""))}
    assert texts - outputs - paths == set()


@pytest.mark.parametrize(("words", "refused"), [
    (["ci", "gitlab", "--tags", "x", "--checkout", "."], False),
    (["publish", "."], False),
    (["accept", "x.yaml", "--archive", "."], True),
])  # fmt: skip
def test_the_present_folder_is_a_folder_and_no_file(words, refused, place, capsys):
    cli.main(words)
    assert ("this is a folder (.)" in capsys.readouterr().err) is refused


@pytest.mark.parametrize("target", TARGETS.split())
@pytest.mark.parametrize("written", WRITTEN, ids=" ".join)
def test_no_output_replaces_measured_data(written, target, place, refused):
    before = state(place)
    command, option = written
    words = [*WRITTEN[written].split(), *([option] if option.startswith("--") else []), target]
    assert REFUSED.fullmatch(refused(cli.COMMANDS[command].errors.get("", 2), *words))
    assert state(place) == before


@pytest.mark.parametrize(("words", "status"), [
    ("gate --pairs pairs.csv --better lower --output gate.json", 3),
    ("export --format csv --output figures.csv", 0),
    ("export --format reframe --output figures.db", 0),
    ("report --output results/local/report.html", 0),
])  # fmt: skip
def test_an_output_may_replace_an_earlier_one_and_pages_lie_beside_records(words, status, place, capsys):
    for _ in range(2):
        assert cli.main(words.split()) == status
        assert "replace" not in capsys.readouterr().err
    assert (place / words.split()[-1]).stat().st_size > 0


@pytest.mark.parametrize("written", WRITTEN, ids=" ".join)
def test_an_output_that_cannot_be_made_is_refused_before_anything_is_measured(written, place, capsys):
    before = state(place)
    command, option = written
    words = [*WRITTEN[written].split(), *([option] if option.startswith("--") else []), "variant.json/new/out"]
    assert cli.main(words) == (cli.COMMANDS[command].errors.get("", 2))
    line = f"plumb: this is a file and no folder ({place / 'variant.json'}): name another output\n"
    assert capsys.readouterr().err == line
    assert state(place) == before


@pytest.mark.parametrize("words", [
    "gate --pairs pairs.csv --better lower --output new/deep/gate.json",
    "export --format csv --output new/deep/figures.csv",
    "export --format openmetrics --output new/deep/figures.om",
    "export --format reframe --output new/deep/figures.db",
    "report --output new/deep/report.html",
    "publish new/deep/pages",
])  # fmt: skip
def test_the_folders_of_an_output_are_made(words, place, capsys):
    assert cli.main(words.split()) in (0, 3)
    assert "plumb: " not in capsys.readouterr().err
    assert (place / words.split()[-1]).exists()


def test_an_earlier_copy_of_a_session_is_replaced_by_a_copy(place):
    session = place / "results" / "local" / f"{samples.record()['session']}.jsonl"
    session.write_bytes((place / "elsewhere.jsonl").read_bytes().lstrip())
    shutil.copy(session, place / "copy.jsonl")
    sources.refuse_kept(files.Copy("copy.jsonl"))
    with pytest.raises(PlumbError, match="may not replace"):
        sources.refuse_kept(files.Output("copy.jsonl"))
    session.write_bytes(session.read_bytes() * 2)
    with pytest.raises(PlumbError, match="may not replace"):
        sources.refuse_kept(files.Copy("copy.jsonl"))


def test_an_input_is_not_written_over_by_any_name(place, capsys, refused):
    (place / "same").hardlink_to("pairs.csv")
    (place / "loop").symlink_to("loop")
    before = state(place)
    gate = "gate --pairs pairs.csv --better lower --output"
    for line in (
        *(f"{gate} {target}" for target in ("pairs.csv", "same", "backup/../pairs.csv", "a.json --output a.json")),
        "launch variant.json --records variant.json",
    ):
        assert cli.main(line.split()) in (2, 3)
        assert "this file is an output and is also used otherwise" in capsys.readouterr().err, line
    assert "report it" not in refused(3, "gate", "--pairs", "loop", "--better", "lower", "--output", "loop")
    assert state(place) == before


def test_a_folder_that_is_made_anew_has_no_results_in_it(place, monkeypatch):
    (place / files.MARK).touch()
    before = state(place)
    with pytest.raises(PlumbError, match="the folder of the records is in it"):
        files.make_anew(place)
    assert state(place) == before
    monkeypatch.setenv("PLUMB_RESULTS", "/nowhere")
    files.make_anew(place)
    assert [entry.name for entry in place.iterdir()] == [files.MARK]
