"""Floating-point performance of a whole node.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``kernels`` (our own programs).
"""

import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.rfm import KernelTest


@rfm.simple_test
class dgemm_node(KernelTest):
    """Matrix product on all cores, in percent of the measured peak (experiment U4)."""

    kernel = "dgemm"
    mpi_matters = False
    placement = parameter(["core", "numa", "socket", "node"])
    arguments = ["--repetitions", "3"]
    figures = [("rate", "rate", {}), ("efficiency", "efficiency", {}), ("peak", "peak", {})]
    # OpenBLAS would otherwise start threads of its own, which sleep
    benchmark_environment = {"OPENBLAS_NUM_THREADS": "1"}
    quick_placements = ("node",)
