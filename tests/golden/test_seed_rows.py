"""``docs/seeds.md``: a row for every experiment of the seed documents, with a command that does something."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_seed_sites import reframe

from plumbline import paths

PAGE = (paths.root() / "docs" / "seeds.md").read_text(encoding="utf-8").replace(r"\|", "\0")
#: row -> its command
ROWS = dict(re.findall(r"^\| ([A-Z]\d) \| .+? \| (.+?) \| .*\|$", PAGE, re.MULTILINE))
MISSING = "does not exist yet"


def commands(*programs: str) -> list[list[str]]:
    """The words of every command of ``programs`` on the page; of ReFrame's, those of this suite on this site."""
    found = [shlex.split(code.replace("\0", "|")) for code in re.findall("`(.+?)`", PAGE)]
    return [words for words in found if words[0] in programs and len(words) > 2 and words[1] != "-c"]


def test_every_experiment_has_a_row_with_a_command_unless_it_is_said_to_be_missing() -> None:
    counts = {"T": 5, "R": 9, "U": 4, "S": 7, "D": 8}
    assert list(ROWS) == [f"{letter}{number}" for letter, last in counts.items() for number in range(1, last + 1)]
    without = {name for name, command in ROWS.items() if not re.fullmatch("`(reframe -n|plumb).+`", command)}
    assert without == {name for name, command in ROWS.items() if command == MISSING}


def test_each_selection_has_tests(tmp_path: Path) -> None:
    patterns = [words[2] for words in commands("reframe")]
    described = json.loads(reframe("ulysses", "--describe", "-n", "|".join(patterns), prefix=tmp_path))
    names = [check["name"].replace(" ", "") for check in described]
    assert [pattern for pattern in patterns if not any(re.search(pattern, name) for name in names)] == []


@pytest.mark.parametrize("words", commands("plumb", "plumb-bind"), ids=" ".join)
def test_each_other_command_runs(words: list[str], tmp_path: Path) -> None:
    results = {"PLUMB_RESULTS": str(tmp_path)} if words[1] in ("profile", "tune") else {}
    path = f"{Path(sys.executable).parent}:{paths.tools() / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        words, cwd=paths.root(), env={**os.environ, **results, "PATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout
