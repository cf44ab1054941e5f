"""Command lines that nobody meant, and records that steer a terminal: one line, a status that says so, no traceback."""

import argparse
import importlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import fence
import frozen
import fuzz
import own_code
import pytest
import samples
import yaml

from plumbline.base import paths
from plumbline.base.verdicts import GIT_ENDS
from plumbline.commands import cli, completion
from plumbline.commands.table import COMMANDS
from plumbline.extras.nodes import checks
from plumbline.records import store

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "tools"
#: the commands whose exit status is a verdict
OF_VERDICTS = [name for name, entry in COMMANDS.items() if "" in entry.errors]
#: words for any of them
ANY = [
    *("", "-", "--", "---", "-1", "1e999", "nan", "10" * 30, "≤", "\x1b[2J", "a\nb", "../..", "/dev/null", "--help"),
    *("*", "%s", "last", "local", "first", "out", "pass.csv", "given.jsonl", "variant.json", "1", "0.5", "2026-01"),
]
#: command lines that get far, beside the examples and the golden ones
FAR = """
accept contract.yaml --recorded --archive contract.tar
accept contract.yaml --work out
application check --application code/plumb.yaml
bisect first last --application code/plumb.yaml --stack mpich
bisect first last --application code/plumb.yaml --stack mpich --dry-run
campaign --test stream
check --class pass.csv --seconds 55
gate --baseline listed --candidate mpich --test stream
gate --baseline first --candidate last --application code/plumb.yaml --stack mpich
compare --hybrid heat --application code/plumb.yaml
lab R7 --recorded
launch variant.json --seed 1 --work out --records records.jsonl
nodes states --scheduler slurm
reproduce 000000000005
run heat --application code/plumb.yaml --stack mpich
screen --history checks.jsonl --output page.html
screen --site local --dry-run
screen --node-hours 20
setup --stack mpich --no-ceilings
site init --site new --dry-run
site measure --site local
stack install wheel:mpich
stack pack stacks.tar first
why 000000000005 000000000008
tune mpich --work out
why listed mpich --test stream --dry-run
why first last --application code/plumb.yaml --stack mpich
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
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


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """What the golden commands read, and more."""
    folder = tmp_path_factory.mktemp("source") / "folder"
    folder.mkdir()
    frozen.write(folder)
    (folder / "variant.json").write_text(json.dumps(samples.variant(stack="mpich")))
    shutil.copy(ROOT / "tests/rates/example.screen.jsonl", folder / "checks.jsonl")
    shutil.rmtree(folder / "stacks" / "torn")
    shutil.copytree(ROOT / "docs/examples/heat", folder / "code")
    document = yaml.safe_load((folder / "code/plumb.yaml").read_text())
    own_code.commit(folder / "code", document)
    own_code.commit(folder / "code", document | {"build": ["make -j 2"]}, "last")
    return folder


@pytest.fixture
def fenced(source, tmp_path, monkeypatch):
    """A copy of it as the working directory, so deep that ``../..`` is the test's; nothing escapes from there."""
    folder = tmp_path / "a" / "b" / "c"
    shutil.copytree(source, folder)
    for manifest in (folder / "stacks").glob("*/manifest.json"):
        manifest.write_text(manifest.read_text().replace(str(source), str(folder)))
    for name in ("results", "sites", "stacks", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(folder / name))
    monkeypatch.setenv("PLUMB_TOOLS", str(TOOLS))
    checks.class_file("local", "default").parent.mkdir(parents=True)
    shutil.copy(ROOT / "tests/rates/example.class", checks.class_file("local", "default"))
    monkeypatch.chdir(folder)
    with fence.around(tmp_path, monkeypatch) as standing:
        yield standing


def parser_of(command):
    (table,) = (item for item in cli._parser([command])._actions if isinstance(item, argparse._SubParsersAction))
    return table.choices[command]


def option_words(command):
    """The options of a command and its actions, the actions, and the values that options choose from."""
    actions = [item for item in completion._actions(parser_of(command)) if item.dest != "help"]
    words = [word for item in actions for word in [*item.option_strings, *map(str, item.choices or ())]]
    return [*dict.fromkeys([*words, *(f"--{name}" for name in paths.FOLDERS)])]


def sound_lines(command):
    """What a command is called with: nothing, its example, and those of :data:`FAR` and of the golden commands."""
    texts = (COMMANDS[command].example.removeprefix("plumb "), FAR, (ROOT / "tests/golden/commands.txt").read_text())
    lines = [shlex.split(line, comments=True) for text in texts for line in text.splitlines()]
    return [[command], *(line for line in lines if next(filter(COMMANDS.get, line), None) == command)]


def line_of(chance, words, sound):
    """A sound line with some words of the command's own, or any others, put in, put in place of others, or removed."""
    line = [*chance.choice(sound)]
    for _ in range(chance.randrange(6)):
        start = chance.randrange(1, len(line) + 1)
        length = chance.choice((0, 0, 0, 1))
        line[start : start + length] = chance.choice(
            ([chance.choice(words)], [chance.choice(words), chance.choice(ANY)], [chance.choice(ANY)], [])
        )
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_any_words_end_in_a_status_and_no_traceback(command, fenced, capsys):
    chance = fuzz.draw(f"words of {command}")
    words, sound = option_words(command), sound_lines(command)
    for _ in range(fuzz.COUNT):
        line = line_of(chance, words, sound)
        try:
            status = cli.main(line)
        except SystemExit as ended:
            status = ended.code
        errors = capsys.readouterr().err
        context = f"{shlex.join(line)}: {status}: {errors}"
        others = {"prove": (126, 127)}.get(command, (GIT_ENDS,) if "--for" in " ".join(line) else ())
        assert status in (0, 1, 2, 3, *others), context
        assert "please report it" not in errors, context
        assert "Traceback" not in errors, context
        assert not fenced.others, context
        if command in OF_VERDICTS and command in line and re.search("^plumb: (?!damaged)", errors, re.MULTILINE):
            assert status in (3, GIT_ENDS), context


@pytest.mark.parametrize("line", FAR.split("\n")[1:-1])
def test_a_line_that_gets_far_is_understood(line):
    words = line.split()
    assert cli._parser(words).parse_known_args(words)[1] == []


#: an event that the fence hears -> what it is of, but for the file PLACE outside
EVENTS = {
    "os.exec": lambda _: os.execv("/bin/false", ["false"]),  # noqa: S606
    "os.fork": lambda _: os.fork(),
    "os.forkpty": lambda _: os.forkpty(),
    "os.posix_spawn": lambda _: os.posix_spawn("/bin/false", ["false"], {}),
    "os.system": lambda _: os.system("false"),  # noqa: S605
    "subprocess.Popen": lambda _: subprocess.run(["false"], check=False),
    "os.kill": lambda _: os.kill(os.getpid(), 0),
    "os.killpg": lambda _: os.killpg(os.getpgrp(), 0),
    "socket.connect": lambda _: socket.create_connection(("127.0.0.1", 9)),
    "socket.getaddrinfo": lambda _: socket.getaddrinfo("localhost", 9),
    "socket.sendto": lambda _: socket.socket(type=socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", 9)),
    "open": lambda place: place.write_text(""),
    "os.chmod": lambda place: place.chmod(0o600),
    "os.link": lambda place: place.hardlink_to("pass.csv"),
    "os.mkdir": lambda place: place.mkdir(),
    "os.remove": lambda place: place.unlink(),
    "os.rename": lambda place: Path("pass.csv").rename(place),
    "os.rmdir": lambda place: place.rmdir(),
    "os.symlink": lambda place: place.symlink_to("pass.csv"),
    "os.truncate": lambda place: os.truncate(place, 0),
    "shutil.rmtree": lambda place: shutil.rmtree(place),
}


def test_the_fence_knows_each_event_and_each_program_that_it_lets_through(fenced):
    assert fence.STARTS | fence.REACHES | fence.CHANGES.keys() | {"open"} == EVENTS.keys()
    programs = [shutil.which("git"), paths.binder(), next(paths.stacks().glob("kernels/libexec/*"))]
    assert [Path(str(program)).name for program in programs] == [*fence.READERS]


def test_the_fence_refuses_each_of_them(fenced, tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    before = {file.name: file.stat().st_ctime_ns for file in base.iterdir()}
    for number, event in enumerate(EVENTS):
        with pytest.raises(OSError, match=r"temporarily unavailable|not permitted"):
            EVENTS[event](base / "outside")
        assert len(fenced.programs) + len(fenced.others) == number + 1, event
    assert {file.name: file.stat().st_ctime_ns for file in base.iterdir()} == before


def test_where_no_process_can_be_started_the_cure_says_so(fenced, capsys, refused):
    assert refused(2, "campaign").endswith(": end some processes, or raise ulimit -u\n")
    assert cli.main(["check", "--class", "pass.csv", "--form", "nagios"]) == 3
    assert capsys.readouterr().out.startswith("PLUMB UNKNOWN - plumb-check cannot be started: Resource temporarily")
    assert fenced.programs == ["reframe", "plumb-check"]


@pytest.mark.parametrize("command", OF_VERDICTS)
def test_what_is_wrong_before_the_command_is_no_verdict(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--reslts", "folder", command])
    assert ended.value.code == 3
    assert "invalid choice: 'folder'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["\x1b[2J\x1b[31mPASS", "\x07", "\x9b31m", "\x00", "\u202eSSAP", "\r42 verified", "\x7f", "\x08\x08ok"]
)
def test_what_a_record_says_cannot_steer_the_terminal(text, place, capsys):
    for words in (["list"], ["show", "last"], ["diff", "last", "last"]):
        launch = samples.launch(0, 5.0, verified=False, reasons=[f"launch: {text}"])
        document = samples.record(launches=[launch], reasons=[text], nodes=[text], host={"kernel": text})
        (place / "results" / "local" / "s.jsonl").write_text(json.dumps(document) + "\n")
        cli.main(words)
        shown = "".join(capsys.readouterr())
        assert not {char for char in text if not char.isprintable()} & set(shown), words


def test_a_damaged_record_cannot_steer_the_terminal(place, capsys):
    (place / "results" / "local" / "s.jsonl").write_bytes(b'{"\x1b[2J": 1, "schema": "\x9b"}\n')
    assert cli.main(["list"]) == 1
    assert "\x1b" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_ctrl_c_while_a_command_is_loaded_is_one_line(command, monkeypatch, refused):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert refused(130, command) == "plumb: interrupted\n"


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_command_that_cannot_be_loaded_is_no_verdict(command, monkeypatch, refused):
    def broken(_):
        raise ImportError("libscipy.so: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", broken)
    assert refused(3 if command in OF_VERDICTS else 2, command).startswith("plumb: ImportError: libscipy.so")


@pytest.mark.parametrize(
    "words",
    [["report", "--output", ""], ["gate", "--pairs", "pairs.csv", "--better", "lower", "--output", ""]],
    ids=["report", "gate"],
)
def test_a_file_without_a_name_is_one_line(words, place, capsys):
    assert cli.main(words) in (2, 3)
    errors = capsys.readouterr().err
    assert errors.startswith("plumb: this is a folder"), errors
    assert errors.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_no_error_of_ours(monkeypatch, refused):
    def refuse(_):
        raise PermissionError(13, "Permission denied", "/opt/checkout/build")

    monkeypatch.setattr("plumbline.commands.records.run_list.run", refuse)
    assert refused(2, "list").startswith("plumb: cannot continue: Permission denied (/opt/checkout/build): ")


def test_the_sample_is_a_record(place):
    assert all(not isinstance(item, store.Damage) for item in store.read(place / "results" / "local" / "s.jsonl"))


@pytest.mark.parametrize("name", ["with blank", "with:colon", "with\ttab"])
def test_stacks_are_not_installed_where_their_programs_could_not_run(name, place, capsys):
    assert cli.main(["--stacks", str(place / name), "stack", "install", "openmpi"]) == 2
    assert "the path of the stacks has a blank or a colon" in capsys.readouterr().err
    assert not (place / name).exists()


@pytest.mark.parametrize(("words", "what"), [
    (["compare", "--hybrid", "--site", "nosuch"], "no records of site 'nosuch'"),
    (["tune", "some", "--dry-run", "--profile-of", "ffff"], "no record 'ffff'"),
    (["tune", "some", "--dry-run", "--profile-of", "last"], "there is no profile"),
    (["site", "check", "\x1b[31mno\nsuch"], "'\\u001b[31mno such' cannot be the name of a site"),
    (["site", "check", "../sites"], "'../sites' cannot be the name of a site"),
    (["site", "check", "s" * 5000], f"'{'s' * 40}' cannot be the name of a site"),
    (["history", "--series", "/dev/zero", "--better", "lower"], "cannot read the series: it is a device"),
    (["outliers", "--members", "/dev/zero", "--better", "lower"], "cannot read the values: it is a device"),
], ids=lambda value: "".join(char for char in str(value)[:50] if char.isalnum()))  # fmt: skip
def test_what_is_not_there_is_one_line(words, what, place, refused):
    assert refused(3 if words[0] in OF_VERDICTS else 2, *words).startswith(f"plumb: {what}")


def test_what_a_killed_compaction_left_is_removed(place):
    left = place / "results" / "local" / "compact" / ".2026-01.jsonl.gz.4711"
    left.parent.mkdir()
    left.touch()
    assert cli.main(["compact", "--site", "local"]) == 0
    assert sorted(file.name for file in left.parent.iterdir()) == ["2026-01.0001.jsonl.gz"]
