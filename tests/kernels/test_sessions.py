"""MPI 4 without MPI_Init: in each installed library, ranks with a session alone are one MPI program."""

import json
import os
import subprocess

from plumbline.launch.witness import compare, processes
from plumbline.proof import judged
from plumbline.stacks import kernels, manifest

PROGRAM = """
#include <mpi.h>
#include <unistd.h>
int main(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    usleep(20000);
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS) return 1;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    usleep(20000);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return usleep(20000);
}
"""


def test_the_window_of_a_program_with_a_session_alone(each_stack, tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    around = {**os.environ, **manifest.environment(each_stack.manifest, os.environ)}
    subprocess.run([kernels.wrapper(each_stack.manifest), source, "-o", program], env=around, check=True)
    preloaded = processes.preloaded(os.environ, tmp_path)
    done = each_stack.mpirun(2, str(program), env={name: preloaded[name] for name in judged.VARIABLES})
    assert done.returncode == 0, done.stderr
    seen = [each for each in map(json.loads, (file.read_text() for file in tmp_path.glob("*.json"))) if each["mpi"]]
    assert [each["world"] for each in seen] == [2, 2]
    for window, usage in ((each["window"], each["usage"]) for each in seen):
        assert 0.02 <= window["wall_s"] <= usage["wall_s"] - 0.04
        most = max(compare.CLOCK_S, compare.CLOCK_FRACTION * window["wall_s"])
        assert abs(window["clock_s"] - window["wall_s"]) <= most, window["clock"]
