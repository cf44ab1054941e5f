"""Each lab of one node that this machine can show, run for real, as small as can be: every table gets its figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import own_code
import pytest

from plumbline import site
from plumbline.base import paths
from plumbline.labs import evidence, machine, model
from plumbline.labs.model import Lab
from plumbline.records import query
from plumbline.reframe import selection

pytestmark = [pytest.mark.e2e, pytest.mark.long]
#: a stack with the eager limits and algorithms that labs change
STACK = "openmpi"
#: options of the kernels that would take long, most of all where caches are large; those of one solution, or call
SMALL = {"--size": "64", "--sweeps": "4", "--repetitions": "1"}
KERNELS = ("daxpy", "dgemm", "jacobi", "jacobi_temporal", "overlap", "rank_ring")
#: STREAM's arrays follow the caches, and no option makes them smaller
WITHOUT_SIZES = ("stream_",)


def shown() -> list[str]:
    """The labs that need one node, and nothing else that this host lacks."""
    own = site.claiming(site.load_all())
    offers = machine.offered(own) if own else []
    return [
        name
        for name, lab in model.every().items()
        if own and lab.needs.nodes == 1 and not any(test.startswith(WITHOUT_SIZES) for test in lab.tests)
        if not machine.lacking(lab.needs, offers)
    ]


def described(folder: Path, around: dict[str, str], labs: Iterable[Lab], *options: str) -> list[dict[str, Any]]:
    """What ``plumb launch`` is given for the first and last variant of each pattern of labs, as a dry run writes it."""
    tests = sorted({test for lab in labs for test in lab.tests})
    command = [str(Path(sys.executable).parent / "reframe"), "--nocolor"]
    command += selection.words(selection.files("|".join(tests)))
    command += ["-C", f"{around.get('PLUMB_SITES', paths.sites())}/settings.py", "--prefix", str(folder), *options]
    command += ["-n", f"^(?:{'|'.join(tests)})", "-p", f"^{STACK}$", "-S", "launches=1", "--dry-run"]
    done = subprocess.run(
        [*command, "--keep-stage-files"], capture_output=True, text=True, check=False, timeout=300, env=around
    )
    assert "[  PASSED  ]" in done.stdout, done.stdout + done.stderr
    files = sorted((folder / "stage").rglob("variant.json"))
    variants = {one["name"].replace(" ", ""): one for one in (json.loads(file.read_text()) for file in files)}
    matching = [[name for name in variants if re.match(test, name)] for test in tests]
    return [small(variants[name]) for name in dict.fromkeys(one for own in matching for one in (*own[:1], *own[-1:]))]


def small(variant: dict[str, Any]) -> dict[str, Any]:
    """The same with small sizes, where its kernel has such options."""
    if variant["benchmark"] not in KERNELS:
        return variant
    words, known = list(variant["arguments"]), options(variant["benchmark"])
    for name, value in SMALL.items():
        if name in words:
            words[words.index(name) + 1] = value
        elif name in known:
            words += [name, value]
    return {**variant, "arguments": words}


def options(kernel: str) -> set[str]:
    """The options that a kernel has."""
    program = paths.stacks() / STACK / "kernels" / "bin" / kernel
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=60).stdout
    return set(re.findall(r"^ +(--\w+)", helped, re.MULTILINE))


def launch(variants: Iterable[dict[str, Any]], folder: Path, plumb: Callable[..., tuple[int, str]]) -> None:
    """Launch each once; up to three times where ranks of a busy machine do not begin together."""
    for number, variant in enumerate(variants):
        file = folder / f"{number}.json"
        file.write_text(json.dumps(variant), encoding="utf-8")
        for attempt in range(3):
            status, output = plumb("launch", str(file), "--work", str(folder / f"work-{number}-{attempt}"))
            if status == 0 or "missed the common start" not in output:
                break
        assert status == 0, f"{variant['name']}: {output}"


def check(name: str, around: dict[str, str], plumb: Callable[..., tuple[int, str]], file: Path) -> None:
    """The lab ends with what was seen, and each of its tables has figures measured here."""
    lab = model.named(name)
    recorded = ["--recorded"] if lab.tests else []
    status, output = plumb("lab", name, *recorded, "--output", str(file))
    assert status == 0, output
    closing = json.loads(file.read_text(encoding="utf-8"))["closing"]
    assert closing.startswith(("holds", "does not hold", "too few launches")), output
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_RESULTS", around["PLUMB_RESULTS"])
        rows, damages = query.records(query.Selection())
    empty = [one.table.title for one in evidence.filled(lab, rows) if not one.measured.cells]
    assert (empty, damages) == ([], [])


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of commands whose results have launches of all tests of the labs of one node."""
    folder = tmp_path_factory.mktemp("labs")
    around = own_code.variables(folder)
    variants = described(folder, around, map(model.named, shown()))
    launch(variants, folder, lambda *words: own_code.plumb(folder, around, *words))
    return around


@pytest.mark.parametrize("name", shown())
def test_a_lab_shows_the_figures_that_were_measured(around: dict[str, str], name: str, tmp_path: Path) -> None:
    check(name, around, lambda *words: own_code.plumb(paths.root(), around, *words), tmp_path / "lab.json")
