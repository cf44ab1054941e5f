"""MPI 4 without MPI_Init: in each installed library, ranks with sessions alone are one MPI program."""

import json
import os
import subprocess
from pathlib import Path

from plumbline.launch.witness import compare, processes
from plumbline.proof import judged
from plumbline.stacks import kernels, manifest

SOURCE = Path(__file__).parents[1] / "support" / "programs" / "sessions.c"


def test_the_window_of_a_program_with_sessions_alone(each_stack, tmp_path):
    program = tmp_path / "program"
    around = {**os.environ, **manifest.environment(each_stack.manifest, os.environ)}
    subprocess.run([kernels.wrapper(each_stack.manifest), SOURCE, "-o", program], env=around, check=True)
    preloaded = processes.preloaded(os.environ, tmp_path)
    done = each_stack.mpirun(2, str(program), env={name: preloaded[name] for name in judged.VARIABLES})
    assert done.returncode == 0, done.stderr
    seen = [each for each in map(json.loads, (file.read_text() for file in tmp_path.glob("*.json"))) if each["mpi"]]
    assert [each["world"] for each in seen] == [2, 2]
    for window, usage in ((each["window"], each["usage"]) for each in seen):
        assert 0.02 <= window["wall_s"] <= usage["wall_s"] - 0.04
        most = max(compare.CLOCK_S, compare.CLOCK_FRACTION * window["wall_s"])
        assert abs(window["clock_s"] - window["wall_s"]) <= most, window["clock"]
