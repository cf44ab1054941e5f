"""Tests of our own kernels."""

from __future__ import annotations

from reframe.core.builtins import run_after, variable

from plumbline.reframe.benchmark import PlumbTest


class KernelTest(PlumbTest):
    """One of our own kernels, as built for the stack.

    A test may have a parameter ``build`` of ``stack`` and ``abi``: the build for the stack, and the one that every
    library with the standard MPI ABI runs.
    """

    #: program name; a test's ``arguments`` need not say ``--json``
    kernel = variable(str)

    parser = "kernel"
    tags = {"kernels", "full"}

    @run_after("init")
    def name_kernel(self) -> None:
        """Set the benchmark's id in the manifest: the kernel's name, with ``-abi`` for the ABI build."""
        self.benchmark = f"{self.kernel}-abi" if self.optional("build") == "abi" else self.kernel
        self.context = {"kernel": self.kernel}

    @run_after("setup")
    def ask_for_json(self) -> None:
        """Add ``--json`` to the arguments: the parser reads JSON."""
        if "--json" not in self.arguments:
            self.arguments = [*self.arguments, "--json"]
