"""Golden plans: what every placement is on every stored topology, written out so that a person can check it.

A wanted change is written with ``PLUMB_GOLDEN=write pytest tests/golden/test_plans.py`` and then read as a diff.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from folded import fold
from plans import resolve

from plumbline.base import paths
from plumbline.base.errors import PlumbError

TOPOLOGIES = Path("tests/data/topologies")
GOLDEN = Path(__file__).parent / "plans"

#: options after the placement are those of ``resolve``
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("none", {"ranks": 2}),
    ("compact", {}),
    ("compact", {"threads": 3}),
    ("scatter", {}),
    ("scatter", {"threads": 3}),
    ("spread", {"threads": 3}),
    ("spread", {"ranks": 1}),
    ("spread", {"ranks": 1, "threads": 4}),
    ("spread", {"ranks": 2, "threads": 4}),
    ("core", {"ranks": 3}),
    ("l3", {}),
    ("numa", {}),
    ("numa", {"ranks": 2, "threads": 2}),
    ("socket", {}),
    ("node", {}),
    ("numa:0", {}),
    ("numa:2", {"threads": 1}),
    ("socket:1", {"threads": 2}),
    ("smt", {"ranks": 4}),
    ("smt", {"ranks": 4, "threads": 1}),
    ("roundrobin", {"ranks": 2}),
    *((f"ways:{ways}", {}) for ways in (1, 2, 3, 4, 6, 8)),
    *((f"pair:{kind}", {}) for kind in ("smt", "l2", "l3", "numa", "socket", "xsocket", "node", "0,2")),
    *((f"pair:{kind}", {"threads": 2}) for kind in ("smt", "l2", "l3", "xsocket", "0,2")),
    ("socket", {"threads": 1, "memory": "interleave"}),
    ("socket", {"threads": 1, "memory": "remote"}),
    ("socket", {"threads": 1, "memory": "node:1"}),
    ("socket", {"threads": 1, "memory": "firsttouch"}),
)

#: what a batch system may leave of a node: the same machine, fewer CPUs
NARROWED = {
    "ulysses-2x10": "0-6,10-12",
    "epyc-2x64-smt2": "5-12,16-17,70-75,133-140,198",
    "rrze-nehalem": "1,2,9,12-14",
}

MACHINES = [*((path.stem, None) for path in sorted((paths.root() / TOPOLOGIES).glob("*.xml"))), *NARROWED.items()]


def title(placement: str, options: dict[str, Any]) -> str:
    return " ".join([placement, *(f"--{key} {value}" for key, value in options.items())])


def span(cpus: list[int]) -> str:
    """Numbers in the order given, runs shortened: ``0-3,8``."""
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and runs[-1][-1] + 1 == cpu:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def describe(plan: dict[str, Any]) -> list[str]:
    """One line per rank: places in thread order (for ``none`` the CPUs), memory policy. First what is not usual."""
    unusual = {"not bound": not plan["bound"], "cyclic": plan["map"] == "cyclic", "2 nodes": plan["nodes"] == 2}
    words = [
        f"{plan['threads']} threads",
        f"memory {plan['memory']}",
        *(word for word, is_so in unusual.items() if is_so),
    ]
    lines = [", ".join(words)]
    for rank in plan["ranks"]:
        places = [cpu for place in rank["places"] for cpu in place]
        mem = f"{rank['mem']['policy']} {span(rank['mem']['nodes'])}".strip()
        lines.append(f"{rank['local_rank']}: {span(places) if places else 'any of ' + span(rank['cpus'])} | {mem}")
    return lines


def answer(name: str, placement: str, options: dict[str, Any], allowed: str | None) -> list[str]:
    try:
        return describe(resolve(placement, topology=TOPOLOGIES / f"{name}.xml", allowed=allowed, **options))
    except PlumbError as error:
        return [f"error: {error.message}"]


@pytest.mark.parametrize(("name", "allowed"), MACHINES, ids=[f"{n}{'-narrowed' * bool(a)}" for n, a in MACHINES])
def test_plans_are_as_written_down(name: str, allowed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(paths.root())
    found = {title(placement, options): answer(name, placement, options, allowed) for placement, options in CASES}
    golden = GOLDEN / f"{name}{'-narrowed' if allowed else ''}.json"
    if os.environ.get("PLUMB_GOLDEN") == "write":
        golden.write_text(fold(found) + "\n", encoding="utf-8")
    assert golden.is_file(), "no golden plans: write them with PLUMB_GOLDEN=write and read them"
    expected = json.loads(golden.read_text(encoding="utf-8"))
    assert list(found) == list(expected)
    for case, lines in found.items():
        assert lines == expected[case], case


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == {f"{n}{'-narrowed' * bool(a)}" for n, a in MACHINES}
