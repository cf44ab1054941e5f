"""The base classes of all ReFrame tests: they turn variants into ``plumb launch`` jobs and show the records' figures.

ReFrame selects, submits and shows. It does not decide which CPU anything runs on (plumb-bind does), nor whether a
figure is good (the gate does).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.measure.reframe.stage import machines, node_counts
    from plumbline.measure.reframe.tests import KernelTest, PlumbTest, SuiteTest

__all__ = ["KernelTest", "PlumbTest", "SuiteTest", "machines", "node_counts"]


def __getattr__(name: str) -> Any:
    """ReFrame is loaded for the first test, not for commands that start it: it takes longer than most of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "tests" if name.endswith("Test") else "stage"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
