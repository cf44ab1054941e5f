"""Whether an MPI library gives the CPU away while it waits for a message, counted on this host."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from plumbline import mpi, parsers
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.launch import process
from plumbline.launch.environment import at_home, inherit
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

KERNEL = "threaded_pingpong"
BYTES, EXCHANGES = 16, 5000
ARGUMENTS = (
    *("--mode", "serial", "--level", "funneled", "--threads", "1", "--messages", "2"),
    *("--bytes", str(BYTES), "--repetitions", str(EXCHANGES), "--json"),
)
#: launches of each kind, in turn; the best time counts, because the effect is shown and nothing is decided by it
LAUNCHES = 3
TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class Yields:
    """``calls`` of sched_yield per exchange, by the rank that has more; times of a round trip of 16 bytes in us.

    ``kept_us`` is the time where the calls return at once, None where there are none.
    """

    calls: float
    time_us: float
    kept_us: float | None


def measure(stack: Manifest) -> Yields:
    """Measure two ranks of ``stack``, on cores of their own.

    Raises :class:`PlumbError` if they cannot be started.
    """
    if KERNEL not in stack.benchmarks:
        raise PlumbError(f"stack {stack.name} has no {KERNEL}", "its manifest", "install it again")
    calls, time_us = _launch(stack, keep=False)
    if calls == 0:
        return Yields(0.0, time_us, None)
    times, kept = [time_us], [_launch(stack, keep=True)[1]]
    for _ in range(LAUNCHES - 1):
        times.append(_launch(stack, keep=False)[1])
        kept.append(_launch(stack, keep=True)[1])
    return Yields(calls / EXCHANGES, min(times), min(kept))


def _launch(stack: Manifest, keep: bool) -> tuple[int, float]:
    """The calls of the rank with most of them, and the time of a round trip, us."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inner in ("yields", "output"):
            (folder / inner).mkdir()
        around = {**inherit(os.environ).kept, **manifests.environment(stack, os.environ)}
        launcher = stack.launcher_on(None, around)
        start = launcher.command(mpi.Layout(nodes=1, ranks_per_node=2), bound=True, environment=around)
        variables = {name: value for name, value in around.items() if name not in start.removed}
        preload = ["env", f"LD_PRELOAD={paths.yields_library()}", f"PLUMB_YIELDS_DIR={folder / 'yields'}"]
        preload += ["PLUMB_YIELDS_SPIN=1"] if keep else []
        bind = [str(paths.binder()), "--placement", "compact", "--threads", "1", "--output", "output", "--"]
        command = [*start.arguments, *bind, *preload, *stack.benchmarks[KERNEL].command, *ARGUMENTS]
        ended = process.run(command, at_home({**variables, **start.environment}, folder), folder, TIME_LIMIT_S)
        if ended.status != "ok":
            lines = process.printed(folder / "stderr").strip().splitlines() or [ended.status]
            message = f"two ranks of {stack.name} cannot be started: {lines[-1]}"
            raise PlumbError(message, KERNEL, "plumb stack check")
        counts = [int(file.read_text(encoding="utf-8")) for file in (folder / "yields").iterdir()]
        if len(counts) != 2:
            message = f"{len(counts)} of 2 ranks of {stack.name} counted their yields"
            raise PlumbError(message, str(paths.yields_library()), paths.setup())
        text = "".join(process.printed(file) for file in sorted((folder / "output").iterdir()))
    measurements = parsers.parse("kernel", text, {"kernel": KERNEL})
    times = [item.value for item in measurements if item.metric == "time" and item.params.get("messages") == 1]
    return max(counts), float(times[0])
