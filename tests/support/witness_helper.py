"""What the witness tests share: a stand-in for plumb-bind, a compiler, and plans for this host.

Run as a program it does what plumb-bind does before exec: affinity, environment, the library, then the program.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from plans import typed
from witnesses import of_documents, read

from plumbline.base import paths
from plumbline.launch.witness.compare import compare as compare_structs

ONE_MIB = 1 << 20
#: C programs that tests compile
PROGRAMS = Path(__file__).with_name("programs")
MPI = "mpi.c"


def library() -> Path:
    """The installed witness; a missing one is a failure, because nothing can be verified without it."""
    found = paths.library("witness")
    if not found.exists():
        pytest.fail(f"{found} is missing: run 'make setup'")
    return found


def cpus(count: int) -> list[int]:
    """The first ``count`` CPUs that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < count:
        pytest.skip(f"this host gives {len(allowed)} CPU, the test needs {count}")
    return allowed[:count]


def compile_c(folder: Path, source: str, *flags: str | Path, name: str = "program") -> Path:
    """``source``, a text or the name of one of :data:`PROGRAMS`, compiled with gcc; a host without one fails."""
    text, output = PROGRAMS / source, folder / name
    if not source.endswith(".c"):
        text = folder / f"{name}.c"
        text.write_text(source)
    command = ["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", output, text, *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


def with_mpi(folder: Path) -> list[str]:
    """Options by which a program is linked to libmpi.so in ``folder``."""
    return [f"-L{folder}", "-lmpi", f"-Wl,-rpath,{folder}"]


def rank_plan(places: list[list[int]], nodes: Sequence[int] = (0,), local_rank: int = 0, policy: str = "bind") -> dict:
    """One element of a plan's ``ranks``."""
    return {
        "local_rank": local_rank,
        "cpus": sorted({cpu for place in places for cpu in place}),
        "places": places,
        "mem": {"policy": policy, "nodes": list(nodes)},
    }


def node_plan(*ranks: dict) -> dict:
    """A whole plan."""
    return {"placement": "compact", "threads": 1, "memory": "local", "topology": "this host", "ranks": list(ranks)}


def start(folder, rank: dict | None, command: list, environment=(), preload=None, **options) -> subprocess.Popen:
    """Starts ``command`` as plumb-bind would, as ``rank`` of a plan."""
    folder.mkdir(exist_ok=True)
    own = {"OMP_NUM_THREADS": "1", "HELPER_DIR": str(folder), "HELPER_LIBRARY": str(preload or library())}
    if rank is not None:
        own["HELPER_PLAN"] = json.dumps(rank)
        own["OMP_NUM_THREADS"] = str(len(rank["places"]))
        own["OMP_PLACES"] = ",".join("{" + ",".join(map(str, place)) + "}" for place in rank["places"])
        own["OMP_PROC_BIND"] = "close"
        own["OMPI_COMM_WORLD_LOCAL_RANK"] = str(rank["local_rank"])
        own["OMPI_COMM_WORLD_RANK"] = str(rank["local_rank"])
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, command)],
        env={**os.environ, **own, **dict(environment)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def run(folder: Path, rank: dict | None, command: list, *arguments: object, **options: object) -> tuple[int, str]:
    """As :func:`start`, to the end: exit status and stderr."""
    process = start(folder, rank, command, *arguments, **options)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


def compare(plan: dict, witnesses: list, ranks: dict[str, int] | int, *, binds: str = "threads") -> list[str]:
    """Why ``witnesses`` do not prove the document ``plan``; a number of ranks is that of each host that left one."""
    hosts = ranks if isinstance(ranks, dict) else dict.fromkeys(sorted({item["host"] for item in witnesses}), ranks)
    return of_documents(compare_structs)(typed(plan), witnesses, hosts, binds=binds)


def only(folder: Path) -> dict:
    """The one witness in ``folder``, which must be valid."""
    found, reasons = read(folder)
    assert reasons == []
    assert len(found) == 1
    return found[0]


class Rank:
    """One rank, planned for the second CPU; what moves it moves it to the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.other, self.own = cpus(2)
        self.plan = rank_plan([[self.own]])

    def reasons(self, *command: object) -> list[str]:
        """Why a run of ``command`` is not verified."""
        status, stderr = run(self.folder / "w", self.plan, list(command))
        assert (status, stderr) == (0, "")
        self.seen, faults = read(self.folder / "w")
        return faults + compare(node_plan(self.plan), self.seen, {os.uname().nodename: 1})

    def wrapper(self, kind: str, words: Sequence[object], replace: bool) -> Path:
        """A script that runs ``words`` as a child, or is replaced by them."""
        script = self.folder / f"wrapper-{kind}"
        line = " ".join(map(str, words))
        if kind == "bash":
            text = f"#!/bin/bash\nexport LC_ALL=C\n{'exec ' if replace else ''}{line}\nexit $?\n"
        elif replace:
            text = f"#!{sys.executable}\nimport os\nos.execvp({str(words[0])!r}, {line.split()!r})\n"
        else:
            text = f"#!{sys.executable}\nimport subprocess, sys\nsys.exit(subprocess.call({line.split()!r}))\n"
        script.write_text(text)
        script.chmod(0o755)
        return script


def _become() -> None:
    environment = os.environ
    if "HELPER_PLAN" in environment:
        plan = json.loads(environment["HELPER_PLAN"])
        os.sched_setaffinity(0, plan["cpus"])
        environment["PLUMB_PLAN"] = json.dumps(plan)
    environment["PLUMB_WITNESS_DIR"] = environment.pop("HELPER_DIR")
    environment["PLUMB_WITNESS_PID"] = str(os.getpid())
    environment["LD_PRELOAD"] = environment.pop("HELPER_LIBRARY")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606


if __name__ == "__main__":
    _become()
