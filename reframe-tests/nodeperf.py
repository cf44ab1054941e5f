"""Floating-point performance of a whole node.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``scaling`` (curves), ``kernels`` (ours).
"""

import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.host import machine
from plumbline.measure.reframe import KernelTest, machines


class DgemmTest(KernelTest):
    """Rate of the BLAS, the peak measured beside it, and the one in percent of the other."""

    kernel = "dgemm"
    mpi_matters = False
    figures = [("rate", "rate", {}), ("efficiency", "efficiency", {}), ("peak", "peak", {})]
    # OpenBLAS would otherwise start threads of its own, which sleep
    benchmark_environment = {"OPENBLAS_NUM_THREADS": "1"}


@rfm.simple_test
class dgemm_node(DgemmTest):
    """Matrix product on all cores, in percent of the measured peak (experiment U4)."""

    placement = parameter(["node", "core", "numa", "socket"], type=str)
    arguments = ["--repetitions", "3"]
    quick_placements = ("node",)


@rfm.simple_test
class dgemm_threads(DgemmTest):
    """One rank, more and more threads, each with a block of the product."""

    placement = parameter(["compact", "spread"], type=str)
    threads = parameter(machine.node_threads(machines()), type=int)
    ranks_per_node = 1
    arguments = ["--repetitions", "3"]
    quick_placements = ()
    tags = {"kernels", "scaling"}


@rfm.simple_test
class dgemm_update(DgemmTest):
    """The published shape: four rank-192 updates of a matrix of 15000 rows by one rank (experiment U4)."""

    placement = "node"
    arguments = ["--size", "15000", "--depth", "192", "--repetitions", "4"]
    launch_time_limit = 300.0
    quick_placements = ()
