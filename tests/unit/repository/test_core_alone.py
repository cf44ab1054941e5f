"""The core works without the extras: in a copy of the package from which their folder was removed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import record

from plumbline.base import paths
from plumbline.commands import table

EXTRAS = {name for name, entry in table.COMMANDS.items() if entry.module.startswith("plumbline.extras.")}


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package alone, without extras, and results with a record."""
    folder = tmp_path_factory.mktemp("core")
    kept = shutil.ignore_patterns("extras", "__pycache__", "tools", "suite")
    shutil.copytree(paths.package(), folder / "plumbline", ignore=kept)
    (folder / "results/local").mkdir(parents=True)
    (folder / "results/local/s.jsonl").write_text(json.dumps(record()) + "\n")
    rows = "".join(f"a,{10 + place % 7 / 100},{10 + (place + 3) % 7 / 100}\n" for place in range(90))
    (folder / "pairs.csv").write_text(f"series,baseline,candidate\n{rows}")
    return folder


def plumb(core: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from plumbline.commands import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--results", "results", *words]
    return subprocess.run(command, cwd=core, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("words", "output"), [
    ("--help", "plumb help --all"),
    ("help --all", "list the records by test"),
    ("list", "1 variant"),
    ("show last", "launches"),
    ("compare openmpi openmpi", ""),
    ("report --output report.html", "report.html"),
    ("gate --pairs pairs.csv --better lower", "PASS"),
    ("stack list", "wheel"),
    ("doctor", "to fix"),
    ("stack check openmpi --run", "no extra for stack.check"),
])  # fmt: skip
def test_commands_of_the_core_need_no_extra(core, words, output):
    done = plumb(core, *words.split())
    assert "error in Plumbline" not in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert output in done.stdout + done.stderr


EVERYTHING = """
import contextlib, importlib, io, pkgutil
import plumbline
from plumbline.commands import cli, table
for module in pkgutil.walk_packages(plumbline.__path__, "plumbline."):
    if module.name != "plumbline.measure.reframe.applications":  # ReFrame loads it, for one application
        importlib.import_module(module.name)
for name in table.COMMANDS:
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        cli.main([name, "--help"])
    assert out.getvalue().startswith(f"usage: plumb {name}"), name
print(len(table.COMMANDS), plumbline.__path__[0])
"""


def test_every_module_is_imported_and_every_command_has_its_help(core):
    done = subprocess.run([sys.executable, "-c", EVERYTHING], cwd=core, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    number = sum(not entry.module.startswith("plumbline.extras.") for entry in table.COMMANDS.values())
    assert done.stdout.split() == [str(number), str(core / "plumbline")]


def test_commands_of_extras_are_not_there(core):
    assert {"tune", "why", "lab"} <= EXTRAS
    text = plumb(core, "help", "--all").stdout
    shown = {line.split()[0] for line in text.splitlines() if line.startswith("    ") and line.split()}
    assert shown & EXTRAS == set()
    assert plumb(core, "tune", "openmpi").returncode == 2
