"""``collective --protocol loop`` takes as long as a plain loop of calls in a program without our code.

    .venv/bin/python -m pytest tests/kernels/test_plain_loop.py -s    # prints the table, too

The fastest of interleaved launches are compared, and there are more of them until they agree: other work makes both
slower now and then, and the cause that this test is for (blocks that lie apart) made every launch several times slower.
Where they never agree while other programs wait for the CPUs, nothing can be said, and the test is skipped.
"""

import os
import subprocess
from pathlib import Path

import pytest
from kernel_stack import KernelStack
from processes import succeeded

from plumbline.base.table import table
from plumbline.stacks import kernels, manifest

#: what a call costs has to agree within this factor
FACTOR = 1.6
MOST_LAUNCHES = 5
#: the load of two ranks, which wait for one another by polling, and half a program more
BUSY = 2.5
#: libraries take memory for some calls: whether each call gets new pages depends on what the process freed before
KEEP_PAGES = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
Times = dict[str, float]


def plain(stack: KernelStack, program: Path, *numbers: int) -> Times:
    """``numbers``: bytes, calls and loops; so many loops that an operation takes tens of milliseconds."""
    done = succeeded(stack.mpirun(2, str(program), *map(str, numbers), env=KEEP_PAGES))
    return {name: float(time) for name, time in map(str.split, done.stdout.splitlines())}


def kernel(stack: KernelStack, size: int) -> Times:
    options = ["--protocol", "loop", "--bytes", str(size), "--repetitions", "40", "--seconds", "0.3"]
    document = stack.json(2, "collective", *options, env=KEEP_PAGES)
    return {item["params"]["operation"]: item["value"] for item in document["measurements"] if item["metric"] == "time"}


def least(known: Times, more: Times) -> Times:
    return {name: min(time, known.get(name, time)) for name, time in more.items()}


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize(("size", "calls", "loops"), [(64, 100, 2000), (16384, 50, 200), (131072, 20, 100)])
def test_a_loop_of_the_kernel_costs_what_a_plain_loop_costs(each_stack, tmp_path, size, calls, loops):
    program = tmp_path / "plain_loop"
    source = Path(__file__).with_name("plain_loop.c")
    command = [kernels.wrapper(each_stack.manifest), "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source]
    subprocess.run(command, check=True, env={**os.environ, **manifest.environment(each_stack.manifest, os.environ)})
    ours: Times = {}
    theirs: Times = {}
    for launches in range(1, MOST_LAUNCHES + 1):
        ours = least(ours, kernel(each_stack, size))
        theirs = least(theirs, plain(each_stack, program, size, calls, loops))
        ratios = {name: ours[name] / time for name, time in theirs.items()}
        apart = [name for name, ratio in ratios.items() if not 1 / FACTOR < ratio < FACTOR]
        if not apart and launches > 1:
            break
    header = [f"{each_stack.name}, {size} B", "kernel us", "plain us", "ratio"]
    rows = [[name, f"{ours[name]:.3f}", f"{time:.3f}", f"{ratios[name]:.2f}"] for name, time in theirs.items()]
    print(table(header, rows, right=header[1:]), f"\nthe least of {launches} launches")
    if apart and (load := os.getloadavg()[0]) > BUSY:
        pytest.skip(f"other work keeps the CPUs busy (load {load:.1f}): {', '.join(apart)} differ")
    assert not apart
