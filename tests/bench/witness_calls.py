#!/usr/bin/env python3
"""What the witness adds to one MPI call: the least time of many batches on one rank, with and without it.

The least time does not depend on what else the machine does, unlike that of a ping-pong (witness_programs.py).

    python tests/bench/witness_calls.py --stack mpich
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from plumbline import mpi
from plumbline.base import paths
from plumbline.stacks import manifest as manifests

LAUNCHES = 6


def main() -> int:
    """Build, measure in turn, print."""
    parser = argparse.ArgumentParser(description="What the witness adds to one MPI call.")
    parser.add_argument("--stack", required=True, help="an installed stack")
    manifest = manifests.load(parser.parse_args().stack)
    environment = {**os.environ, **manifests.environment(manifest, os.environ)}
    start = manifest.launcher_on(None, os.environ).command(
        mpi.Layout(nodes=1, ranks_per_node=1), bound=True, environment=os.environ
    )
    prefix = Path(manifest.prefix)
    with tempfile.TemporaryDirectory(prefix="plumb-calls-") as folder:
        program, source = Path(folder) / "calls", Path(__file__).with_suffix(".c")
        libraries = ["-L", str(prefix / "lib"), "-lmpi", f"-Wl,-rpath,{prefix / 'lib'}"]
        build = ["gcc", "-O2", "-I", str(prefix / "include"), "-o", str(program), str(source), *libraries]
        subprocess.run(build, check=True, env=environment)
        found: dict[bool, list[list[float]]] = {False: [], True: []}
        for number in range(2 * LAUNCHES):
            witnessed = number % 4 in (1, 2)
            witness = ["--witness", folder] if witnessed else []
            command = [*start.arguments, str(paths.binder()), "--placement", "core", *witness, "--", str(program)]
            done = subprocess.run(
                command, env={**environment, **start.environment}, check=True, capture_output=True, text=True
            )
            found[witnessed].append([float(word) for word in done.stdout.split()])
    for kind, name in enumerate(("MPI_Recv from nobody", "MPI_Sendrecv with itself")):
        without, with_it = (min(times[kind] for times in found[witnessed]) for witnessed in (False, True))
        print(f"{name}: {without:.2f} ns without, {with_it:.2f} with")
    return 0


if __name__ == "__main__":
    sys.exit(main())
