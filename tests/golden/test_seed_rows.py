"""``docs/seeds.md``: a row for every experiment of the seed documents, with a command that does something."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_seed_sites import dry_run, topology, variants

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.topology.plan import resolve

PAGE = (paths.root() / "docs" / "seeds.md").read_text(encoding="utf-8").replace(r"\|", "\0")
#: row -> its command
ROWS = dict(re.findall(r"^\| ([A-Z]\d) \| .+? \| (.+?) \| .*\|$", PAGE, re.MULTILINE))
#: no variant of these fits on a machine without GPUs; tests/golden/test_devices.py has what they ask of OSU
NEED_GPUS = ["osu_device"]


def commands(*programs: str) -> list[list[str]]:
    """The words of every command of ``programs`` on the page; of ReFrame's, those of this suite on this site."""
    found = [shlex.split(code.replace("\0", "|")) for code in re.findall("`(.+?)`", PAGE)]
    return [words for words in found if words[0] in programs and len(words) > 2 and words[1] != "-c"]


def test_every_experiment_has_a_row_with_a_command() -> None:
    counts = {"T": 5, "R": 9, "U": 4, "S": 7, "D": 8}
    assert list(ROWS) == [f"{letter}{number}" for letter, last in counts.items() for number in range(1, last + 1)]
    assert [name for name, command in ROWS.items() if not re.fullmatch("`(reframe -n|plumb).+`", command)] == []


def words_of(check: dict[str, Any]) -> str:
    """A variant's name as ReFrame's ``-n`` sees it."""
    return str(check["name"]).replace(" ", "")


def has_room(check: dict[str, Any]) -> bool:
    """Whether a node of gpc holds the variant. What a class sets (two threads of a pair) ReFrame does not describe."""
    counts = [check["threads"]] if "threads" in check else [None, 2]
    where = check.get("placement", "node"), check.get("memory"), check["ranks_per_node"] or None
    return any(holds(*where, threads) for threads in counts)


@functools.cache
def holds(placement: str, memory: str | None, ranks: int | None, threads: int | None) -> bool:
    """Whether a node of gpc has room for a placement."""
    try:
        resolve(placement, threads=threads, memory=memory, ranks=ranks, topology=topology("gpc", "default"))
    except PlumbError:
        return False
    return True


def test_each_selection_makes_job_scripts(tmp_path: Path) -> None:
    """Of each test that a command selects, the first and the last variant for which gpc has room: 4 nodes of 2 x 4."""
    patterns = {one for words in commands("reframe") for one in words[2].split("|")}
    described = [check for check in variants("gpc") if any(re.search(one, words_of(check)) for one in patterns)]
    fitting = [check for check in described if has_room(check)]
    selected = {one: [words_of(check) for check in fitting if re.search(one, words_of(check))] for one in patterns}
    made = [
        words_of(variant) for variant in prepared({one for names in selected.values() for one in ends(names)}, tmp_path)
    ]
    assert [one for one in patterns if not any(re.search(one, name) for name in made)] == NEED_GPUS


def ends(names: list[str]) -> list[str]:
    """The first and the last of ``names``."""
    return [*names[:1], *names[-1:]]


def prepared(names: set[str], folder: Path) -> list[dict[str, Any]]:
    """What ``plumb launch`` is given for the variants ``names`` on gpc, as a dry run writes it."""
    stages = dry_run("gpc", "|".join(f"^{re.escape(name)}$" for name in names), "openmpi", folder)
    return [json.loads((stage / "variant.json").read_text(encoding="utf-8")) for stage in stages]


def test_every_kernel_is_asked_for_json(tmp_path: Path) -> None:
    """Of each class, the first and the last variant for which gpc has room: nothing else can be read."""
    kernels: dict[str, list[str]] = {}
    for check in variants("gpc"):
        if check.get("parser") == "kernel" and check["kernel"] != "gpu_memory" and has_room(check):
            kernels.setdefault(check["@class"], []).append(words_of(check))
    found = prepared({one for names in kernels.values() for one in ends(names)}, tmp_path)
    assert {variant["test"] for variant in found} == set(kernels)
    assert [variant["name"] for variant in found if "--json" not in variant["arguments"]] == []


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
