"""The builds of ``plumb run``, as the tests of ReFrame and the descriptions of launches have it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.measure.application.build import Built, executable
from plumbline.measure.application.model import Program, test_name
from plumbline.parsers.application import Rules
from plumbline.records.variant import ApplicationState
from plumbline.stacks import manifest as manifests

#: the variable that names the file with a :class:`Runnable`, for ReFrame on this host
VARIABLE = "PLUMB_APPLICATION"


class Runnable(Struct, frozen=True, kw_only=True):
    """An application in one state of its code; ``stacks``: the folder of its build, by stack."""

    application: str
    commit: str | None
    changed: bool
    digest: str
    build: dict[str, str]
    programs: dict[str, Program]
    stacks: dict[str, str]

    @classmethod
    def of(cls, builds: Sequence[Built]) -> Runnable:
        """The application of ``builds``, which are of one state of the code and of different stacks."""
        first = builds[0]
        return cls(
            application=first.application.application,
            commit=first.source.commit,
            changed=first.source.changed,
            digest=first.source.digest,
            build=dict(first.source.variables),
            programs=first.application.programs,
            stacks={built.stack: str(built.folder) for built in builds},
        )

    def test(self, program: str) -> str:
        """The name of the test that measures ``program``."""
        return test_name(self.application, program)

    def state(self, program: str) -> ApplicationState:
        """The state of the code, as the records of ``program`` have it."""
        return ApplicationState(
            name=self.application,
            program=program,
            commit=self.commit,
            changed=self.changed,
            digest=self.digest,
            build=self.build,
        )

    def context(self, called: str, stack: str) -> dict[str, Any]:
        """The facts that a launch of the program ``called`` needs, as built with ``stack``."""
        program, folder = self.programs[called], Path(self.stacks[stack])
        file = executable(program.words[0], folder, manifests.load(stack))
        rules = Rules(figures=program.figures, checks=program.checks)
        return {
            "program": str(file),
            "command": [str(file)],
            "inputs": {name: str(folder / name) for name in program.inputs},
            **({"stdin": str(folder / program.stdin)} if program.stdin else {}),
            "mpi": program.mpi,
            "binds": program.binds,
            "rules": msgspec.to_builtins(rules),
        }
