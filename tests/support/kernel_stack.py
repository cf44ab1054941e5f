"""A stack with our kernels, and how a test runs one of them: by the MPI library's launcher, or as a launch."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import own_site
import pytest
import schema_files
from msgspec.structs import replace
from samples import asked

from plumbline.base import paths, schemas
from plumbline.measure import driver
from plumbline.parsers import kernel as kernels
from plumbline.records import model
from plumbline.stacks import manifest
from plumbline.stacks.manifest import Manifest


def json_of(done: subprocess.CompletedProcess[str], passes: bool = True) -> dict[str, Any]:
    """The result of a kernel that was run with ``--json``, checked against its schema."""
    assert done.returncode == (0 if passes else 1), done.stdout + done.stderr
    document = dict(json.loads(done.stdout))
    schemas.convert("kernel", document, kernels.Printed, "standard output")
    assert document["passed"] is passes
    return document


def of_the_program(document: dict[str, Any]) -> list[str]:
    """The remarks of a kernel's result, but for that which other programs of the machine may cause at any time."""
    return [remark for remark in document["remarks"] if "likely cause: other programs" not in remark]


def fake_cuda(folder: Path) -> dict[str, str]:
    """The environment in which kernels find the driver of ``fake_cuda.c``."""
    made_up(folder / "libcuda.so.1", "fake_cuda.c")
    return {"LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")}


def made_up(library: Path, source: str) -> Path:
    """The shared ``library``, made of a C file of this folder."""
    file = Path(__file__).with_name(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o", library, file], check=True)
    return library


TIME = [{"name": "time", "metric": "time", "where": {}}]


@dataclass(frozen=True)
class KernelStack:
    """An installed stack with our kernels."""

    name: str
    manifest: Manifest

    @property
    def programs(self) -> Path:
        """Where the kernels are."""
        return paths.stacks() / self.name / "kernels" / "bin"

    def json(self, ranks: int, program: str, *arguments: str, passes: bool = True, **options: Any) -> dict[str, Any]:
        """The result of a kernel (see :meth:`mpirun`), whose checks must pass, or fail."""
        return json_of(self.mpirun(ranks, program, *arguments, "--json", **options), passes)

    def mpirun(
        self, ranks: int, program: str, *arguments: str, threads: int | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a kernel (a name, or the path of another build) on ``ranks`` ranks, oversubscribed if need be."""
        launcher = self.manifest.launcher
        command = [launcher.command, "-n", str(ranks)]
        if launcher.family == "prrte":
            command += ["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        chosen = {"OMP_NUM_THREADS": str(threads)} if threads else {}
        around = {"OMP_NUM_THREADS": "1", **os.environ, **manifest.environment(self.manifest, os.environ)}
        return subprocess.run(
            [*command, str(self.programs / program), *arguments],
            capture_output=True, text=True, check=False, env={**around, **chosen, **(env or {})}, timeout=600,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def record(self, folder: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, **changes: Any) -> dict[str, Any]:
        """The record of one launch of ``kernel``, on one rank and by its time, on a stack that has nothing else.

        ``changes`` has the members of the variant that are the test's.
        """
        program = self.programs / kernel
        entry = manifest.benchmark("kernels", "test", program, "for a test")
        own_site.copy(folder)
        (folder / "stacks" / self.name).mkdir(parents=True)
        for name in ("sites", "results", "stacks"):
            monkeypatch.setenv(f"PLUMB_{name.upper()}", str(folder / name))
        manifest.save(replace(self.manifest, benchmarks={kernel: entry}))
        wanted = asked(
            stack=self.name, benchmark=kernel, parser="kernel", context={"kernel": kernel}, threads=1, launches=1,
            name=kernel, test=kernel, **{"placement": "core", "ranks_per_node": 1, "figures": TIME, **changes},
        )  # fmt: skip
        _, records = driver.run([wanted], folder / "work")
        found = model.document(records[0])
        schema_files.check("record", found)
        return found
