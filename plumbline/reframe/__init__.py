"""The base classes of all ReFrame tests: they turn variants into ``plumb launch`` jobs and show the records' figures.

ReFrame selects, submits and shows. It does not decide which CPU anything runs on (plumb-bind does), nor whether a
figure is good (the gate does).
"""

from plumbline.reframe.settings import machines, node_counts
from plumbline.reframe.tests import KernelTest, PlumbTest, SuiteTest

__all__ = ["KernelTest", "PlumbTest", "SuiteTest", "machines", "node_counts"]
