"""Kernels under installed stacks: ``kernel_stack.mpirun(n, program, …)``, or ``.json(…)`` for its result."""

import zlib

import pytest
from kernel_stack import KernelStack

from plumbline.stacks import manifest

STACKS = manifest.names() or ["none"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test of a kernel one of the stacks, by its name, and the others at night."""
    if "kernel_stack" in metafunc.fixturenames:
        turn = STACKS[zlib.crc32(metafunc.function.__name__.encode()) % len(STACKS)]
        night = {name: () if name == turn else pytest.mark.long for name in STACKS}
        params = [pytest.param(name, marks=marks) for name, marks in night.items()]
        metafunc.parametrize("kernel_stack", params, indirect=True)


@pytest.fixture
def kernel_stack(request: pytest.FixtureRequest) -> KernelStack:
    """An installed stack: for what a kernel does on any library."""
    return _load(request.param)


@pytest.fixture(params=STACKS)
def each_stack(request: pytest.FixtureRequest) -> KernelStack:
    """Each installed stack: for what a library may do differently."""
    return _load(request.param)


@pytest.fixture
def one_stack() -> KernelStack:
    """One installed stack: for what no library has a say in."""
    return _load("mpich" if "mpich" in STACKS else STACKS[0])


def _load(name: str) -> KernelStack:
    if name == "none":
        pytest.skip("no stack is installed: make setup")
    stack = KernelStack(name, manifest.load(name))
    if not stack.programs.is_dir():
        pytest.skip(f"stack {name} has no kernels: plumb stack install {name}")
    return stack
