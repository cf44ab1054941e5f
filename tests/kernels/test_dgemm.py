"""``dgemm``: the product of the BLAS is checked, and stands beside the measured peak (experiment U4)."""

from __future__ import annotations

from pathlib import Path

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack

from plumbline.stacks import kernels

TINY = ("--size", "150", "--repetitions", "2", "--json")


@pytest.fixture(autouse=True)
def _has_dgemm(one_stack: KernelStack) -> None:
    if not (one_stack.programs / "dgemm").is_file():
        pytest.skip("dgemm was not built: no BLAS")


@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (2, 2), (1, 6), (3, 1)])
def test_the_product_is_right(kernel_stack: KernelStack, json_of: JsonOf, ranks: int, threads: int) -> None:
    document = json_of(kernel_stack.mpirun(ranks, "dgemm", *TINY, env={"OMP_NUM_THREADS": str(threads)}))
    assert document["passed"], document["checks"]
    figures = {item["metric"]: item for item in document["measurements"]}
    rate, peak = figures["rate"], figures["peak"]
    assert rate["params"] == {"size": 150}
    assert rate["limit"] == pytest.approx(peak["value"])
    assert figures["efficiency"]["value"] == pytest.approx(100 * rate["value"] / peak["value"])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 65])
def test_blocks_of_any_size(one_stack: KernelStack, json_of: JsonOf, size: int) -> None:
    options = ("--size", str(size), "--repetitions", "1", "--json")
    document = json_of(one_stack.mpirun(1, "dgemm", *options, env={"OMP_NUM_THREADS": "4"}))
    assert document["passed"], document["checks"]


def test_it_tells_which_kernels_the_library_chose(one_stack: KernelStack, json_of: JsonOf) -> None:
    document = json_of(one_stack.mpirun(1, "dgemm", *TINY))
    assert any("kernels for" in note or "peak measured" in note for note in document["notes"])


def test_too_large_a_matrix_is_one_line(kernel_stack: KernelStack) -> None:
    done = kernel_stack.mpirun(2, "dgemm", "--size", "900000")
    assert done.returncode == 2
    assert done.stderr.count("dgemm: ") == 1
    assert "GiB needed on a node" in done.stderr


FAULTS = {
    "a block left out": ("dgemm.c", "if (m == 0 || n == 0)", "if (m == 0 || n == 0 || thread == 1)"),
    "one wrong element": ("dgemm.c", "    notes(result);\n", "    notes(result);\n    all.c[77] += 1e-6;\n"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(one_stack: KernelStack, tmp_path: Path, fault: str) -> None:
    file, old, new = FAULTS[fault]
    library = kernels.blas() / "lib"
    options = ["-DPLUMB_BLAS_SYMBOL_PREFIX=scipy_", str(library / "libscipy_openblas.so"), f"-Wl,-rpath,{library}"]
    program = broken_kernel.build(tmp_path, one_stack, "dgemm", file=file, old=old, new=new, options=options)
    done = one_stack.mpirun(1, str(program), *TINY, env={"OMP_NUM_THREADS": "2"})
    assert done.returncode == 1, done.stderr
    assert "dgemm: the answer is wrong: C x against A (B x)" in done.stderr
