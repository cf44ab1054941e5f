"""Every kernel on tiny sizes, built with sanitizers and run under valgrind.

The MPI library is not instrumented: leaks are not looked for, and what valgrind says of the library alone is left out.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from kernel_stack import fake_cuda
from processes import ended, succeeded
from witness_helper import PROGRAMS

from plumbline.base import paths
from plumbline.stacks import blas, kernels, manifest

STACK = "mpich"
#: kernel -> (ranks, threads, options): small enough for an emulator
TINY: dict[str, tuple[int, int, list[str]]] = {
    "pi": (2, 2, ["--intervals", "1K", "--repetitions", "2"]),
    "heat1d": (3, 2, ["--repetitions", "2"]),
    "rank_ring": (3, 1, ["--bytes", "1K", "--repetitions", "1", "--iterations", "2"]),
    "rank_map": (4, 1, ["--cells", "3", "--repetitions", "2", "--ranks-per-node", "2"]),
    "membw": (2, 2, ["--size", "2K", "--repetitions", "2"]),
    "daxpy": (2, 2, ["--size", "1000", "--repetitions", "2"]),
    "barrier": (2, 2, ["--samples", "2", "--iterations", "2", "--spins", "20"]),
    "false_sharing": (2, 2, ["--increments", "500", "--repetitions", "1"]),
    "loop_schedule": (2, 2, ["--iterations", "40", "--work", "2", "--repetitions", "1", "--chunks", "3"]),
    "handover": (1, 2, ["--repetitions", "2"]),
    "dgemm": (2, 2, ["--size", "40", "--repetitions", "1"]),
    "halo_layers": (1, 1, ["--edges", "8"]),
    "jacobi": (2, 2, ["--size", "9,10,11", "--sweeps", "3", "--repetitions", "1"]),
    "jacobi_temporal": (2, 2, ["--size", "9,14,16", "--sweeps", "5", "--repetitions", "1", "--depth", "3"]),
    "threaded_pingpong": (2, 2, ["--bytes", "2K", "--messages", "4", "--repetitions", "2"]),
    "overlap": (2, 2, ["--bytes", "8", "--repetitions", "1"]),
    "pairs": (3, 1, ["--bandwidth-bytes", "4K", "--batches", "2", "--latency-trips", "2", "--bandwidth-trips", "1"]),
    "collective": (2, 1, ["--bytes", "8", "--repetitions", "6", "--in-place", "both", "--late", "1e9"]),
    "saturation": (2, 2, ["--by", "threads", "--bytes", "64", "--windows", "1", "--repetitions", "2"]),
    "gpu_memory": (2, 1, ["--bytes", "64K", "--least", "4K", "--repetitions", "2"]),
    "deadlock": (3, 1, ["--repetitions", "2"]),
}
#: the compiler's time is what these tests take; warnings that need optimisation are found at night (test_warnings.py)
QUICK = "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0 -g1"
ARCHER = next(iter(sorted(Path("/usr/lib").glob("llvm-*/lib/libarcher.so"))), None)
#: sanitizer -> CMake options and environment. ThreadSanitizer knows what OpenMP orders through LLVM's Archer alone:
#: gcc's OpenMP library would look like one data race
SANITIZERS = {
    "address": (
        ["-DPLUMB_SANITIZE=address,undefined"],
        {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
    ),
    "thread": (
        ["-DPLUMB_SANITIZE=thread", "-DCMAKE_C_COMPILER=clang"],
        {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1", "OMP_TOOL_LIBRARIES": str(ARCHER)},
    ),
}


@functools.cache
def no_thread_sanitizer() -> str | None:
    """Why clang's thread sanitizer cannot be used with OpenMP here, or None."""
    packages = "(Debian: clang, libomp-dev, libclang-rt-dev)"
    if shutil.which("clang") is None:
        return f"clang is not installed {packages}"
    if ARCHER is None:
        return f"clang's OpenMP library with Archer is not installed {packages}"
    link = ["clang", "-fopenmp", "-fsanitize=thread", "-x", "c", "-o", "/dev/null", "-"]
    done = ended(link, input="int main(void) { return 0; }")
    if done.returncode:
        return f"clang cannot link its thread sanitizer {packages}: {done.stderr.splitlines()[0]}"
    return None


def build(folder: Path, *options: str) -> Path:
    """Build all kernels against MPICH with further CMake options; the folder of the programs."""
    if STACK not in manifest.names():
        pytest.skip(f"stack {STACK} is not installed: make setup")
    document = manifest.load(STACK)
    base = ["cmake", "-S", str(paths.root() / "custom-kernels" / "kernels"), "-B", str(folder)]
    base += ["-DPLUMB_WARNINGS_AS_ERRORS=ON", f"-DMPI_C_COMPILER={kernels.wrapper(document)}"]
    base += [f"-DPLUMB_BLAS_PREFIX={blas.prefix()}", *options]
    for command in (base, ["cmake", "--build", str(folder), "--parallel", "2"]):
        succeeded(ended(command))
    return folder / "bin"


@functools.cache
def driver() -> dict[str, str]:
    """A driver for the kernel that needs a GPU."""
    return fake_cuda(Path(tempfile.mkdtemp(prefix="plumb-cuda-")))


def run(command: list[str], threads: int, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run under MPICH's launcher with the stack's environment."""
    document = manifest.load(STACK)
    environment = {**os.environ, **manifest.environment(document, os.environ), **variables}
    environment["OMP_NUM_THREADS"] = str(threads)
    environment |= driver()
    return ended(
        [document.launcher.command, *command], env=environment, timeout=600, stdin=subprocess.DEVNULL)  # fmt: skip


@pytest.fixture(scope="module", params=["address", pytest.param("thread", marks=pytest.mark.long)])
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The kernels built with a sanitizer."""
    name = str(request.param)
    if name == "thread" and (reason := no_thread_sanitizer()):
        pytest.skip(reason)
    return name, build(tmp_path_factory.mktemp(name), *SANITIZERS[name][0], "-DCMAKE_BUILD_TYPE=RelWithDebInfo", QUICK)


def test_the_table_has_every_kernel():
    """``barrier_iomp5`` is ``barrier`` on a library that the sanitizers do not know."""
    programs = {item.name for item in (paths.stacks() / STACK / "kernels" / "bin").iterdir()}
    assert programs - {"barrier_iomp5"} == set(TINY)


@pytest.mark.parametrize("kernel", TINY)
def test_kernels_are_clean_under_sanitizers(sanitized, kernel):
    name, folder = sanitized
    ranks, threads, options = TINY[kernel]
    done = succeeded(run(["-n", str(ranks), str(folder / kernel), *options], threads, SANITIZERS[name][1]))
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr


def test_the_thread_sanitizer_finds_a_race(tmp_path):
    if reason := no_thread_sanitizer():
        pytest.skip(reason)
    command = ["clang", "-g", "-fopenmp", "-fsanitize=thread", "-o", tmp_path / "race", PROGRAMS / "race.c"]
    subprocess.run(command, check=True, capture_output=True)
    environment = {**os.environ, **SANITIZERS["thread"][1]}
    done = ended([tmp_path / "race"], env=environment)
    assert "data race" in done.stderr
    assert done.returncode != 0


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels for any x86-64 or ARMv8 processor: valgrind does not know the newest instructions."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    return build(tmp_path_factory.mktemp("portable"), "-DPLUMB_NATIVE=OFF", "-DCMAKE_BUILD_TYPE=RelWithDebInfo")


@pytest.mark.long
@pytest.mark.parametrize("kernel", TINY)
def test_kernels_are_clean_under_valgrind(portable, kernel):
    ranks, threads, options = TINY[kernel]
    valgrind = ["valgrind", "--quiet", "--fair-sched=try", "--error-exitcode=99", "--leak-check=no", "--num-callers=40"]
    valgrind += [f"--suppressions={Path(__file__).parent / 'mpi.supp'}"]
    succeeded(run(["-n", str(ranks), *valgrind, str(portable / kernel), *options], threads, {}))
