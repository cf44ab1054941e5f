"""The test file of applications: a class for each program of the plumb.yaml that ``plumb run`` built.

ReFrame loads it (``reframe -c``); :data:`VARIABLE` names the list of the built programs.
It makes every test of a file and then selects some: those that :data:`PATTERN` excludes are not declared.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import reframe as rfm
from reframe.core.builtins import parameter
from reframe.core.meta import make_test

from plumbline.launch.prepare import APPLICATION
from plumbline.measure.application.build import PATTERN, VARIABLE, Runnable
from plumbline.measure.application.model import Program
from plumbline.measure.reframe import PlumbTest
from plumbline.parsers.application import FigureRule, rate_name
from plumbline.records.variant import ApplicationState


class ApplicationTest(PlumbTest, special=True):  # type: ignore[call-arg]
    """A program of an application, built with each stack, under its placements."""

    benchmark = APPLICATION
    parser = "application"
    #: the built application, the name of the program and its entry in plumb.yaml
    built: Runnable
    called: str
    program: Program

    def suit_stack(self) -> None:
        """Skip a stack that the application was not built with; give the launch its program."""
        stack = self.stack_facts["stack"]
        self.skip_if(stack not in self.built.stacks, f"{self.built.code.name} was not built with stack {stack}")
        self.context = self.built.context(self.called, stack)
        self.arguments = self.program.words[1:]

    def application_state(self) -> ApplicationState:
        """The application and the state of its code."""
        return self.built.state(self.called)


def _margins(rule: FigureRule) -> dict[str, float]:
    margins = {"tolerance": rule.tolerance, "must_detect": rule.must_detect}
    return {name: value for name, value in margins.items() if value is not None}


def _wanted(test: str, values: dict[str, list[Any]], pattern: str) -> list[dict[str, Any]]:
    """The parameters, chosen from ``values``, with which the name of a test begins with what ``pattern`` matches."""
    variants = (dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values()))
    return [
        variant
        for variant in variants
        if re.match(pattern, test + "".join(f"%{name}={value}" for name, value in variant.items()))
    ]


def _tests(built: Runnable, pattern: str) -> None:
    for name, program in built.programs.items():
        several = program.threads if isinstance(program.threads, list) else []
        values: dict[str, list[Any]] = {"placement": program.placements, **({"threads": several} if several else {})}
        if not (wanted := _wanted(built.test(name), values, pattern)):
            continue
        values = {name: list(dict.fromkeys(variant[name] for variant in wanted)) for name in values}
        rates = [rate_name(figure, work) for figure, rule in program.figures.items() for work in rule.rates]
        body: dict[str, Any] = {
            "__doc__": f"{name} of {built.code.name}",
            "built": built,
            "called": name,
            "program": program,
            "placement": parameter(values["placement"], type=str),
            "memory": program.memory or ("firsttouch" if program.binds == "itself" else None),
            "ranks_per_node": program.ranks or (0 if program.mpi else 1),
            "nodes": program.nodes,
            "launches": program.launches,
            "launch_time_limit": program.time_limit_s,
            "benchmark_environment": program.environment,
            "figures": [(figure, figure, {}) for figure in [*program.figures, *rates]],
            "optional_figures": tuple(rates),  # the gate judges the time that they are made of
            "margins": {figure: _margins(rule) for figure, rule in program.figures.items()},
            "tags": {"application"},
        }
        if program.threads:
            body["threads"] = parameter(values["threads"], type=int) if several else program.threads
        rfm.simple_test(make_test(built.test(name), (ApplicationTest,), body, module=__name__))


_tests(msgspec.json.decode(Path(os.environ[VARIABLE]).read_bytes(), type=Runnable), os.environ.get(PATTERN, ""))
