"""IMB-MPI1-GPU of Intel MPI's wheel, for real, on a CUDA runtime that is made up: what it prints is read as IMB's."""

import os

import pytest
from kernel_stack import KernelStack, made_up
from processes import succeeded

from plumbline import parsers
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import manifest

PROGRAM = paths.stacks() / "intelmpi/bin" / manifest.IMB_GPU_PROGRAMS["imb-mpi1-gpu"]
CONTEXT = {"ranks": 2, "last_bytes": 1024}


@pytest.fixture
def stack() -> KernelStack:
    if not PROGRAM.is_file():
        pytest.skip("stack intelmpi is not installed, or the wheel of this machine has no IMB-MPI1-GPU")
    return KernelStack("intelmpi", manifest.load("intelmpi"))


@pytest.mark.parametrize(("operation", "metric"), [("PingPong", "latency"), ("Sendrecv", "time_avg")])
@pytest.mark.parametrize("buffers", ["device", "host"])
def test_its_table_is_that_of_imb(stack, tmp_path, operation, metric, buffers):
    made_up(tmp_path / "libcudart.so", "fake_cudart.c")
    around = stack.manifest.environment.get("LD_LIBRARY_PATH", "")
    env = {"LD_LIBRARY_PATH": f"{tmp_path}:{stack.programs.parents[1] / 'lib'}:{around}"}
    words = (operation, "-npmin", "2", "-iter", "5", "-msglog", "0:10", "-mem_alloc_type", buffers)
    done = succeeded(stack.mpirun(2, str(PROGRAM), *words, env=env))
    found = parsers.parse("imb", done.stdout, {**CONTEXT, "benchmark": operation})
    assert [item.params["bytes"] for item in found if item.metric == metric] == [0, *(1 << n for n in range(11))]
    with pytest.raises(PlumbError):
        parsers.parse("imb", done.stdout, {**CONTEXT, "benchmark": "Exchange"})


def test_without_a_runtime_it_says_so(stack):
    done = stack.mpirun(2, str(PROGRAM), "PingPong", env={"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})
    assert done.returncode != 0
