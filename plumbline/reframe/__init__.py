"""The base classes of all ReFrame tests: they turn variants into ``plumb launch`` jobs and show the records' figures.

ReFrame selects, submits and shows. It does not decide which CPU anything runs on (plumb-bind does), nor whether a
figure is good (the gate does).
"""

from plumbline.reframe.benchmark import PlumbTest
from plumbline.reframe.kernel import KernelTest
from plumbline.reframe.suite import SuiteTest
from plumbline.reframe.system import machines, node_counts

__all__ = ["KernelTest", "PlumbTest", "SuiteTest", "machines", "node_counts"]
