"""The cost of each test: seconds, and CPU seconds of its process and of the programs that it started.

A run of several processes (all targets of make) writes ``build/tests/durations.json`` and prints the sums by folder
beside those of the run before, for the tests that both have.
"""

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

#: costs by test: seconds, CPU seconds
Costs = dict[str, list[float]]


class Meter:
    """In a process that runs tests: what each phase of a test (set-up, call, teardown) used."""

    def __init__(self) -> None:
        self.used = _cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the CPU seconds since the last report to this one."""
        report = yield
        before, self.used = self.used, _cpu()
        report.cpu = self.used - before  # type: ignore[attr-defined]
        return report


def _cpu() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


class Durations:
    """In the process that collects the reports: adds them up, and writes and shows the sums at the end."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.costs: Costs = defaultdict(lambda: [0.0, 0.0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase."""
        cost = self.costs[report.nodeid]
        cost[0] += report.duration
        cost[1] += getattr(report, "cpu", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the costs, and show the sums by folder beside those of the run before."""
        try:
            before: Costs = json.loads(self.file.read_text())
        except (OSError, ValueError):  # there was none, or it was interrupted
            before = {}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        rounded = {name: [round(value, 3) for value in cost] for name, cost in sorted(self.costs.items())}
        self.file.write_text(json.dumps(rounded, indent=0) + "\n")
        for line in table(rounded, before):
            terminalreporter.write_line(line)


def table(costs: Costs, before: Costs) -> list[str]:
    """Sums by folder as lines of text; those of the run before count the tests of this run only."""
    folders: dict[str, list[str]] = defaultdict(list)
    for name in costs:
        folders[str(Path(name.split("::")[0]).parent)].append(name)
    lines = [f"{'folder':<28} {'tests':>6} {'s':>8} {'CPU s':>8} {'before: tests':>14} {'s':>8} {'CPU s':>8}"]
    for folder, names in [*sorted(folders.items()), ("sum", list(costs))]:
        again = [name for name in names if name in before]
        now, then = _sums(costs, names), _sums(before, again)
        lines.append(
            f"{folder:<28} {len(names):>6} {now[0]:>8.1f} {now[1]:>8.1f}"
            + (f" {len(again):>14} {then[0]:>8.1f} {then[1]:>8.1f}" if again else "")
        )
    return lines


def _sums(costs: Costs, names: list[str]) -> tuple[float, float]:
    """Seconds and CPU seconds of some tests."""
    return sum(costs[name][0] for name in names), sum(costs[name][1] for name in names)


def configure(config: pytest.Config) -> None:
    """Register what this process needs; nothing where tests run one after another."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Meter())
    elif config.getoption("numprocesses", None):
        config.pluginmanager.register(Durations(config.rootpath / "build/tests/durations.json"))
