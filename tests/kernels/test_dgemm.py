"""``dgemm``: the product of the BLAS is checked, and stands beside the measured peak (experiment U4)."""

import platform
import re

import broken_kernel
import pytest
from kernel_stack import KernelStack

from plumbline.records import model
from plumbline.show import record as show
from plumbline.stacks import blas, fetch

MKL = "Intel(R) oneAPI Math Kernel Library Version"
TINY = ("--size", "150", "--repetitions", "2")


@pytest.fixture(autouse=True)
def _has_dgemm(one_stack: KernelStack) -> None:
    if not (one_stack.programs / "dgemm").is_file():
        pytest.skip("dgemm was not built: no BLAS")


@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (2, 2), (1, 6), (3, 1)])
def test_the_product_is_right(kernel_stack, ranks, threads):
    document = kernel_stack.json(ranks, "dgemm", *TINY, threads=threads)
    figures = {item["metric"]: item for item in document["measurements"]}
    rate, peak = figures["rate"], figures["peak"]
    assert rate["params"] == {"size": 150, "depth": 150}
    assert rate["limit"] == pytest.approx(peak["value"])
    assert figures["efficiency"]["value"] == pytest.approx(100 * rate["value"] / peak["value"])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 65])
def test_blocks_of_any_size(one_stack, size):
    options = ("--size", str(size), "--repetitions", "1")
    one_stack.json(1, "dgemm", *options, threads=4)


@pytest.mark.parametrize(("ranks", "threads", "size", "depth"), [(1, 1, 150, 12), (1, 3, 65, 200), (2, 2, 40, 1)])
def test_an_update_adds_to_the_matrix(one_stack, ranks, threads, size, depth):
    options = ("--size", str(size), "--depth", str(depth), "--repetitions", "3")
    document = one_stack.json(ranks, "dgemm", *options, threads=threads)
    assert document["measurements"][0]["params"] == {"size": size, "depth": depth}


def test_it_tells_library_version_and_the_kernels_that_it_chose(one_stack):
    """The library and its version are those of the lock, the kernels those that the library was told to take."""
    document = one_stack.json(1, "dgemm", *TINY, env={"OPENBLAS_CORETYPE": "Haswell"})
    chosen = blas.facts()["blas"]
    lock, name, shown = {"openblas": ("blas", "OpenBLAS", "Haswell"), "mkl": ("mkl", MKL, "a processor that")}[chosen]
    version = re.findall(r"==(\d+\.\d+)", (fetch.LOCKS / f"{lock}.txt").read_text(encoding="utf-8"))[0]
    assert document["remarks"][0].startswith(f"BLAS: {name} {version}")
    assert f"; kernels for {shown}" in document["remarks"][0]


#: the processor that OpenBLAS is told it is -> the likely cause of a slow product of a program that has AVX2
CAUSES = {
    "Nehalem": "the BLAS chose kernels for Nehalem with vectors of 2 doubles, where AVX2 has 4",
    "Haswell": "small matrices: a thread's block has 150 rows",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86 processors")
@pytest.mark.parametrize("processor", CAUSES)
def test_far_below_the_peak_it_says_why(one_stack, tmp_path, processor):
    """A loop that counts its work a million times is always far faster than the product."""
    if blas.facts()["blas"] != "openblas":
        pytest.skip("only OpenBLAS can be told for which processor its kernels are")
    fault = {"file": "fma_peak.c", "old": "return 2.0 *", "new": "return 2e6 *"}
    options = ["-mavx2", "-mfma", *blas.options()]
    program = broken_kernel.build(tmp_path, one_stack, "dgemm", **fault, options=options)
    document = one_stack.json(1, str(program), *TINY, env={"OPENBLAS_CORETYPE": processor})
    (line,) = document["remarks"][1:]
    assert line == f"0.0 % of the peak of the same run, less than 80 %; likely cause: {CAUSES[processor]}"


@pytest.mark.e2e
def test_the_record_keeps_what_the_program_says_of_its_library(one_stack, tmp_path, monkeypatch):
    asked = {"arguments": [*TINY, "--json"], "figures": [{"name": "rate", "metric": "rate", "where": {}}]}
    record = one_stack.record(tmp_path, monkeypatch, "dgemm", **asked, time_limit_s=600.0)
    assert record["reasons"] == []
    assert record["launches"][0]["remarks"][0].startswith(("BLAS: OpenBLAS ", f"BLAS: {MKL} "))
    assert "; kernels for " in show.text(model.convert(record))
