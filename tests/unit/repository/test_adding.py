"""The recipes of docs/adding.md work: their diffs are applied to a copy, and the commands below them are run there."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import record

from plumbline import mpi
from plumbline.base import paths
from plumbline.commands.table import COMMANDS
from plumbline.show import summary

ROOT = paths.root()
PAGE = ROOT / "docs/adding.md"
#: copied, because recipes and their commands change it
COPIED = ("plumbline", "pyproject.toml", "custom-kernels", "tests/conftest.py", "tests/support", "tests/golden")
#: only read
LINKED = ("tests/unit", "tests/data", "reframe-tests", "site-configs", "docs", "playbooks", "README.md", "build/tools")
#: where the files of the pages are, how their paths begin, and what is made or of others
BASES = (ROOT, ROOT / "plumbline", ROOT / "plumbline/extras", ROOT / "custom-kernels")
OWN = (
    "plumbline/",
    "tests/",
    "custom-kernels/",
    "reframe-tests/",
    "playbooks/",
    "docs/",
    "site-configs/",
    "spack-env/",
)
OF_OTHERS = {"docs/vendor/iframe-worker.js", "shim/index.js"}
#: section -> which of the tests that it names are run here
TESTS = {
    "A column": "[list]",
    "An extra": "test_help_ends_with_the_example and census",
    "An MPI library": "same_rank_variables or schema_is_made",
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout with a record."""
    for name in (*COPIED, *LINKED):
        source, place = ROOT / name, tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name in LINKED:
            place.symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, place)
    (tmp_path / "results/local").mkdir(parents=True)
    (tmp_path / "results/local/s.jsonl").write_text(json.dumps(record()) + "\n", encoding="utf-8")
    return tmp_path


def section(title: str) -> str:
    (text,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return text


def apply(text: str, folder: Path) -> None:
    """Apply the diffs of a section; the lines around a change must be in the file once."""
    for name, diff in re.findall(r"^```diff\n\+\+\+ (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines = [(line[:1], line[1:]) for line in diff.splitlines(keepends=True)]
        before, after = ("".join(line for mark, line in lines if mark != other) for other in "+-")
        file = folder / name
        if before:
            content = file.read_text(encoding="utf-8")
            assert content.count(before) == 1, f"{name} does not have these lines once:\n{before}"
        else:
            assert not file.exists(), name
            file.parent.mkdir(exist_ok=True)
            content = before
        file.write_text(content.replace(before, after) if before else after, encoding="utf-8")


def run(title: str, folder: Path) -> str:
    """Run the commands of a section; of tests those that are chosen here. All that they print."""
    (block,) = re.findall(r"^```sh\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
    around = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(folder), "COLUMNS": "200"}
    printed = ""
    for line in block.splitlines():
        settings, _, command = line.rpartition(".venv/bin/")
        program, *words = shlex.split(command)
        start = {"python": [sys.executable], "plumb": [sys.executable, "-m", "plumbline.commands.cli"]}
        words = [*start.get(program, [paths.program(program)]), *words]
        words += ["-q", "-n0", "-p", "no:cacheprovider", "-k", TESTS[title]] if "pytest" in words else []
        more = dict(setting.split("=") for setting in settings.split())
        done = subprocess.run(words, cwd=folder, env=around | more, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr}"
        printed += done.stdout
    return printed


def test_a_column(copy):
    assert "ranks" not in [column.title for column in summary.VARIANTS.columns]
    apply(section("A column"), copy)
    header = next(line for line in run("A column", copy).splitlines() if "placement" in line)
    assert "ranks" in header.split()
    assert "ranks" in (copy / "tests/golden/commands/list.txt").read_text(encoding="utf-8")


def test_an_extra_with_a_command(copy):
    assert "census" not in COMMANDS
    apply(section("An extra"), copy)
    printed = run("An extra", copy)
    assert "openmpi: 1\n" in printed
    assert "3 kept, 0 broken" in printed


def test_an_mpi_library(copy):
    assert "examplempi" not in mpi.TABLE
    apply(section("An MPI library"), copy)
    run("An MPI library", copy)
    schemas = {file.name: file.read_text() for file in (copy / "plumbline/base/schemas").glob("*.json")}
    assert sorted(name for name, text in schemas.items() if "examplempi" in text) == [
        "manifest.json", "module-stacks.json", "sources.json",
    ]  # fmt: skip
    code = (
        "from plumbline import mpi; print(mpi.rank({'XMPI_RANK': '5'}), mpi.TABLE['examplempi'].binary_interface('1'))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, cwd=copy, text=True, env={"PYTHONPATH": str(copy)}) == "5 mpich\n"


def test_a_diff_that_no_longer_fits_is_an_error(copy):
    with pytest.raises(AssertionError, match=r"pyproject\.toml does not have these lines once"):
        apply("```diff\n+++ pyproject.toml\n nowhere\n+x\n```\n", copy)


@pytest.mark.parametrize("name", ["adding", "architecture", "contributing"])
def test_files_and_names_of_the_page_are_there(name):
    """Paths are those of the checkout, or below one of :data:`BASES`."""
    text = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    named = {
        file
        for file in re.findall(r"`([\w-]+/[\w./-]*)`", text)
        if file.startswith(OWN) or file.endswith((".py", ".c", ".h"))
        if not re.search("[A-Z]{3}", file) and file not in OF_OTHERS
    }
    places = {file: [place for place in BASES if (place / file).exists()] for file in sorted(named)}
    assert len(named) > 10
    assert [file for file, found in places.items() if not found] == []
    for *words, file in re.findall(r"`(\w+)`(?: and `(\w+)`)? (?:of|in) `([\w-]+/[\w/.-]+\.(?:py|c|txt|yml))`", text):
        for word in words if file in places else ():
            assert re.search(rf"\b{word}\b", (places[file][0] / file).read_text(encoding="utf-8")), (word, file)
