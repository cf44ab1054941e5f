"""Golden commands: what ``plumb`` prints and writes for records, sites, stacks and tables that are always the same.

A wanted change is written with ``PLUMB_GOLDEN=write pytest tests/golden/test_commands.py`` and then read as a diff.
``tests/support/frozen.py`` makes the folder that the commands read. Of a page the golden output has a digest; its
differences to the page of another commit, in words: ``tests/golden/pages.py COMMIT``.
"""

import datetime
import json
import os
import re
import secrets
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import folded
import frozen
import page_words
import pytest
from pages import KEEP

import plumbline
from plumbline.base import paths
from plumbline.commands import cli

TABLE = Path(__file__).with_name("commands.txt")
GOLDEN = Path(__file__).parent / "commands"
IMPORTED = GOLDEN / "imported-by-launch.txt"
#: the rooms that a launch is made of; all others judge, show or plan, and are not loaded beside a measurement
OF_LAUNCH = {
    *("base", "commands", "host", "judge", "launch", "measure", "mpi", "parsers", "records", "schedulers", "site"),
    "stacks",
}
#: what argparse prints of options differs between versions of Python
HELP_OF = (3, 11)
ACTIONS = {
    "stack": ("list", "names", "install", "show", "check", "adopt", "remove", "pack", "lock", "diff", "push"),
    "site": ("init", "list", "check", "measure"),
    "nodes": ("facts", "states", "compare"),
}
#: name -> its commands
CASES = {
    **{f"help {name}": [f"{name} --help"] for name in cli.COMMANDS},
    **{f"help {name} {action}": [f"{name} {action} --help"] for name, actions in ACTIONS.items() for action in actions},
    **{
        name: commands.splitlines()
        for name, commands in re.findall(r"^\[(.+)\]\n((?:.+\n)+)", TABLE.read_text(), re.MULTILINE)
    },
}


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every case gets a copy of. Paths in manifests are those of the copy."""
    folder = tmp_path_factory.mktemp("source") / "given"
    folder.mkdir()
    frozen.write(folder)
    return folder


@pytest.fixture
def given(case: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder of the commands, empty for a help; what they know of the host is always the same."""
    folder = tmp_path / "given"
    if case.startswith("help"):
        folder.mkdir()
    else:
        shutil.copytree(source, folder)
    for manifest in (folder / "stacks").glob("*/manifest.json"):
        manifest.write_text(manifest.read_text().replace(str(source), str(folder)))
    for name in ("results", "sites", "stacks"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(folder / name))
    for name, value in {"COLUMNS": "100", "TZ": "UTC", "HOME": str(folder), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("FORCE_COLOR", "SLURMD_NODENAME"):
        monkeypatch.delenv(name, raising=False)
    numbers = iter(range(10**6))
    monkeypatch.setattr(socket, "gethostname", lambda: "this-host")
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    monkeypatch.chdir(folder)
    return folder


def normal(text: str, folder: Path) -> str:
    """``text`` without what differs by machine, version and time."""
    for word, name in (
        (str(folder), "HERE"), (str(paths.root()), "CHECKOUT"), (sys.prefix, "ENVIRONMENT"),
    ):  # fmt: skip
        text = text.replace(word, name)
    text = re.sub(rf"(plumb |\"plumbline\": \"){re.escape(plumbline.__version__)}\b", r"\1VERSION", text)
    text = re.sub(r"(checkout CHECKOUT), commit [0-9a-f]{12}(, with changes)?", r"\1", text)
    text = re.sub(r"(assets/\w+)-[0-9a-f]{12}|(?<=\.html \()[\d.]+ \w?B", r"\1-ANY", text)  # scripts and styles
    text = re.sub(r"\d+\.\d{9,}(?:e[+-]?\d+)?", lambda number: f"{float(number[0]):.9g}", text)
    return re.sub(r"\b20\d\d(-?)\d\d\1\d\d[T ]\d\d(:?)\d\d(?:\2\d\d(?:\.\d+)?Z?)?", _time, text)


def _time(found: re.Match[str]) -> str:
    """A time of now has no digits in expectations."""
    digits = re.sub(r"\D", "", found[0].partition(".")[0]).ljust(14, "0")
    time = datetime.datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=datetime.timezone.utc)
    age = datetime.datetime.now(datetime.timezone.utc) - time
    return "NOW" if abs(age) < datetime.timedelta(minutes=2) else found[0]


def shown(file: Path, folder: Path) -> str:
    """The content of a file: of a page its digest, of a table or database its rows, else its text."""
    if file.suffix == ".db":
        with sqlite3.connect(file) as database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return "\n".join(str(row) for table in tables for row in database.execute(f"SELECT * FROM {table}"))  # noqa: S608
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".html":
        data = normal(json.dumps(page_words.document(text), ensure_ascii=False), folder)
        if KEEP in os.environ:
            (case,) = re.findall(r"\[(.+)\]", os.environ["PYTEST_CURRENT_TEST"])
            kept = Path(os.environ[KEEP], case, f"{file.relative_to(folder)}.json")
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(data, encoding="utf-8")
        return "\n".join(page_words.digest(json.loads(data)))
    return short(normal(text, folder))


def short(text: str) -> str:
    """``text``, or if it is a JSON document of several lines, the same in fewer."""
    try:
        document = json.loads(text) if text[:2] in ("{\n", "[\n") else None
    except json.JSONDecodeError:
        return text
    return text if document is None else f"{folded.fold(document)}\n"


def answer(words: list[str], folder: Path, before: set[Path], capsys: pytest.CaptureFixture[str]) -> str:
    """Status and output of one command."""
    if words[:1] == ["cat"]:
        files = sorted(file for file in folder.glob(words[1]) if file.is_file())
        return "".join(f"--- {file.relative_to(folder)}\n{shown(file, folder)}\n" for file in files)
    if words[:1] == ["ls"]:
        now = {file for file in folder.rglob("*") if file.is_file()}
        changes = [*(("-", file) for file in sorted(before - now)), *(("+", file) for file in sorted(now - before))]
        return "".join(f"{sign} {file.relative_to(folder)}\n" for sign, file in changes)
    status: Any = None
    try:
        status = cli.main(words)
    except SystemExit as ended:
        status = ended.code
    out, err = (normal(text, folder) for text in capsys.readouterr())
    err = re.sub(r"^usage: .*\n( .*\n)*", "", err, flags=re.MULTILINE)  # the cases of --help have it
    return "".join([short(out), *(f"! {line}\n" for line in err.splitlines()), f"status {status}\n"])


@pytest.mark.parametrize("case", CASES)
def test_commands_say_what_is_written_down(case: str, given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if case.startswith("help") and sys.version_info[:2] != HELP_OF:
        pytest.skip("the help texts are those of another version of Python")
    before = {file for file in given.rglob("*") if file.is_file()}
    found = "\n".join(f"$ {one}\n{answer(shlex.split(one), given, before, capsys)}" for one in CASES[case])
    expected = GOLDEN / f"{case.replace(' ', '-')}.txt"
    found = normal(found, given)
    if os.environ.get("PLUMB_GOLDEN") == "write":
        expected.write_text(found, encoding="utf-8")
    assert expected.is_file(), "no golden output: write it with PLUMB_GOLDEN=write and read it"
    assert found == expected.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    names = {f"{case.replace(' ', '-')}.txt" for case in CASES}
    assert {file.name for file in GOLDEN.iterdir()} == names | {IMPORTED.name}


def test_launch_loads_no_more_than_before(tmp_path: Path) -> None:
    """It runs beside measurements: modules are counted, packages of others written down, and none judges or shows."""
    code = "import sys; begun = set(sys.modules)  # some distributions have a sitecustomize\n"
    code += (
        "from plumbline.commands.cli import main; main(['launch', 'absent.json'])\nprint(*(set(sys.modules) - begun))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(paths.root())},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    modules = ended.stdout.split()
    ours = [name for name in modules if name.split(".")[0] == "plumbline"]
    tops = {name.split(".")[0] for name in modules}
    others = sorted(name for name in tops - sys.stdlib_module_names - {"plumbline"} if not name.startswith("_"))
    text = f"{len(ours)} modules of plumbline at most\n" + "".join(f"{name}\n" for name in others)
    if os.environ.get("PLUMB_GOLDEN") == "write":
        IMPORTED.write_text(text)
    most, *known = IMPORTED.read_text().splitlines()
    assert len(ours) <= int(most.split()[0])
    assert set(others) <= set(known)
    assert {name for name in ours if "extras" in name} == {"plumbline.extras"}  # the table
    assert {name.split(".")[1] for name in ours if "." in name} == {*OF_LAUNCH, "extras"}


#: they take longer to load than most commands to run
HEAVY = {"scipy", "reframe", "polars"}


def test_no_command_loads_what_it_may_not_need() -> None:
    """Each command's module in a process of its own would take a minute: in one, none may load them."""
    code = (
        "import importlib, pkgutil, sys; from plumbline import commands\n"
        "for module in pkgutil.iter_modules(commands.__path__):\n"
        "    importlib.import_module(f'plumbline.commands.{module.name}')\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not HEAVY & set(ended.stdout.split())
