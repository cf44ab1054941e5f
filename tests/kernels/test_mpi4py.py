"""Python programs under witness and profile: mpi4py asks the dynamic linker which functions there are."""

import json
import os

from processes import ended, succeeded

from plumbline.base import paths
from plumbline.stacks import manifest

PROGRAM = """
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
data, found = array("i", [7] * 4), array("i", [0] * 4)
for _ in range(3):
    if world.rank == 0:
        world.Send(data, 1, 5)
    else:
        world.Recv(found, 0, 5)
        assert found == data
world.Sendrecv(data, 1 - world.rank, recvbuf=found, source=1 - world.rank)
world.Allreduce(data, found)
assert found[0] == 14
"""


def test_messages_of_a_python_program_arrive_and_are_counted(each_stack, tmp_path):
    python = f"{each_stack.manifest.prefix}/bin/python"
    launcher = each_stack.manifest.launcher
    options = ["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE"] if launcher.family == "prrte" else []
    folders = {name: tmp_path / name for name in ("witness", "profile")}
    for folder in folders.values():
        folder.mkdir()
    binder = [str(paths.binder()), "--placement", "none"]
    binder += [word for name, folder in folders.items() for word in (f"--{name}", str(folder))]
    command = [launcher.command, "-n", "2", *options, *binder, "--", python, "-I", "-c", PROGRAM]
    environment = {**os.environ, **manifest.environment(each_stack.manifest, os.environ)}
    done = succeeded(ended(command, env=environment, timeout=600))
    assert "not found" not in done.stderr
    seen = [json.loads(file.read_text()) for file in folders["witness"].glob("*.json")]
    assert sorted(one["rank"] for one in seen if one["mpi"]) == [0, 1]
    counts: dict[str, int] = {}
    for file in folders["profile"].glob("*.json"):
        for communicator in json.loads(file.read_text())["communicators"]:
            for call in communicator["calls"]:
                counts[call["call"]] = counts.get(call["call"], 0) + sum(size["count"] for size in call["sizes"])
    assert {name: counts.get(name) for name in ("Send", "Recv", "Sendrecv", "Allreduce")} == {
        "Send": 3, "Recv": 3, "Sendrecv": 2, "Allreduce": 2,
    }  # fmt: skip
