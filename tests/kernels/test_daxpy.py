"""``daxpy``: first touch by the threads and by the master (experiments T1, T2, T3)."""

from __future__ import annotations

from pathlib import Path

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack

TINY = ("--size", "10007", "--repetitions", "3", "--json")


@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (1, 3), (3, 2), (4, 1)])
def test_both_touches_are_right(kernel_stack: KernelStack, json_of: JsonOf, ranks: int, threads: int) -> None:
    document = json_of(kernel_stack.mpirun(ranks, "daxpy", *TINY, env={"OMP_NUM_THREADS": str(threads)}))
    assert document["passed"], document["checks"]
    figures = {(item["metric"], item["params"]["touch"]): item for item in document["measurements"]}
    assert {touch for _, touch in figures} == {"thread", "master"}
    ratio = figures["first_touch_ratio", "thread"]["value"]
    bandwidths = [figures["bandwidth", touch]["value"] for touch in ("thread", "master")]
    assert ratio == pytest.approx(bandwidths[0] / bandwidths[1])
    assert figures["rate", "thread"]["value"] == pytest.approx(bandwidths[0] / 12 * 1e-3)
    assert figures["rate", "thread"]["params"]["working_set"] == 16 * 10007 * ranks


@pytest.mark.parametrize("touch", ["thread", "master"])
def test_one_touch_alone_has_no_ratio(one_stack: KernelStack, json_of: JsonOf, touch: str) -> None:
    document = json_of(one_stack.mpirun(1, "daxpy", *TINY, "--touch", touch))
    assert {item["params"]["touch"] for item in document["measurements"]} == {touch}
    assert {item["metric"] for item in document["measurements"]} == {"bandwidth", "rate"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i < share.end; i++)\n        y[i] += a * x[i];", "i + 1 < share.end; i++)\n        y[i] += a * x[i];"),
        ("daxpy(vectors->y, vectors->x, 0.5,", "daxpy(vectors->y, vectors->x, 0.500001,"),
    ],
    ids=["an element left out", "a wrong factor"],
)
def test_a_fault_is_found(one_stack: KernelStack, tmp_path: Path, old: str, new: str) -> None:
    program = broken_kernel.build(tmp_path, one_stack, "daxpy", file="daxpy.c", old=old, new=new)
    done = one_stack.mpirun(1, str(program), *TINY, env={"OMP_NUM_THREADS": "2"})
    assert done.returncode == 1, done.stderr
    assert "daxpy: the answer is wrong: y, touched by" in done.stderr
