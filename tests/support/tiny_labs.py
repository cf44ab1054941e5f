"""Labs run for real, as small as can be: what their tests launch, and whether their tables get figures."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from plumbline.base import paths
from plumbline.extras.labs import evidence, model
from plumbline.extras.labs.model import Lab, Needs
from plumbline.measure.reframe import cases
from plumbline.records import query

#: options of the kernels that would take long, most of all where caches are large; those of one solution, or call
SMALL = {"--size": "64", "--sweeps": "4", "--repetitions": "1"}
KERNELS = ("daxpy", "dgemm", "jacobi", "jacobi_temporal", "overlap", "rank_ring")
#: STREAM's arrays follow the caches, and no option makes them smaller
WITHOUT_SIZES = ("stream_",)
#: whether all variants are launched, not the first and the last of each pattern
WHOLE = os.environ.get("PLUMB_TEST_LABS") == "whole"
#: runs a command; the exit status, and all that it prints
Run = Callable[..., tuple[int, str]]


def fitting(nodes: int, offers: list[Needs]) -> list[str]:
    """The labs that need so many nodes, and nothing else that the machine lacks."""
    return [
        name
        for name, lab in model.every().items()
        if lab.needs.nodes == nodes and not any(test.startswith(WITHOUT_SIZES) for test in lab.tests)
        if not model.lacking(lab.needs, offers)
    ]


def measure(names: Iterable[str], stack: str, folder: Path, sites: Path, run: Run) -> None:
    """Launch the first and last variant of each pattern of these labs once on a stack; PLUMB_TEST_LABS=whole: all."""
    variants = _described(folder, map(model.named, names), stack, sites, run)
    for number, variant in enumerate(variants):
        file = folder / f"{number}.json"
        file.write_text(json.dumps(variant), encoding="utf-8")
        for attempt in range(3):
            status, output = run("plumb", "launch", str(file), "--work", str(folder / f"work-{number}-{attempt}"))
            if status == 0 or "missed the common start" not in output:  # ranks of a busy machine
                break
        assert status == 0, f"{variant['name']}: {output}"


def _described(folder: Path, labs: Iterable[Lab], stack: str, sites: Path, run: Run) -> list[dict[str, Any]]:
    """What ``plumb launch`` is given, as a dry run writes it."""
    tests = sorted({test for lab in labs for test in lab.tests})
    words = [*cases.words(cases.files("|".join(tests))), "-C", f"{sites}/settings.py", "--prefix", str(folder)]
    words += ["-n", f"^(?:{'|'.join(tests)})", "-p", f"^{stack}$", "-S", "launches=1"]
    _, output = run("reframe", "--nocolor", *words, "--dry-run", "--keep-stage-files")
    assert "[  PASSED  ]" in output, output
    files = sorted((folder / "stage").rglob("variant.json"))
    variants = {one["name"].replace(" ", ""): one for one in (json.loads(file.read_text()) for file in files)}
    matching = [[name for name in variants if re.match(test, name)] for test in tests]
    return [
        _small(variants[name], stack)
        for name in dict.fromkeys(one for own in matching for one in (own if WHOLE else (*own[:1], *own[-1:])))
    ]


def _small(variant: dict[str, Any], stack: str) -> dict[str, Any]:
    """The same with small sizes, where its kernel has such options, and with time: an emulated machine is slow."""
    variant = {**variant, "time_limit_s": 20 * variant["time_limit_s"]}
    if variant["benchmark"] not in KERNELS:
        return variant
    words, known = list(variant["arguments"]), _options(variant["benchmark"], stack)
    for name, value in SMALL.items():
        if name in words:
            words[words.index(name) + 1] = value
        elif name in known:
            words += [name, value]
    return {**variant, "arguments": words}


def _options(kernel: str, stack: str) -> set[str]:
    """The options that a kernel has."""
    program = paths.stacks() / stack / "kernels" / "bin" / kernel
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=60).stdout
    return set(re.findall(r"^ +(--\w+)", helped, re.MULTILINE))


def check(name: str, around: Mapping[str, str], run: Run, file: Path) -> None:
    """The lab ends with what was seen, and each of its tables has figures measured here."""
    lab = model.named(name)
    recorded = ["--recorded"] if lab.tests else []
    status, output = run("plumb", "lab", name, *recorded, "--output", str(file))
    assert status == 0, output
    closing = json.loads(file.read_text(encoding="utf-8"))["closing"]
    assert closing.startswith(
        ("holds", "does not hold", "not decided here", "too few launches", "true without measuring")
    ), output
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_RESULTS", around["PLUMB_RESULTS"])
        rows, damages = query.records(query.Selection())
    empty = [one.table.title for one in evidence.filled(lab, rows) if not one.measured.cells]
    assert (empty, damages) == ([], [])
