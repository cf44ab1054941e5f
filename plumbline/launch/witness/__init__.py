"""The witnessed placement and work of the measured processes, compared with the plan.

``read`` loads what ``libplumbwitness.so`` wrote, ``compare`` says why a launch is not verified, and
:mod:`plumbline.launch.witness.disturbance` names its disturbances.
"""

from __future__ import annotations

from plumbline.launch.witness.compare import compare
from plumbline.launch.witness.processes import read

__all__ = ["compare", "read"]
