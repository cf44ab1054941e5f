"""The suite itself: nothing was dropped, nothing is missing. Tags: ``quick``, ``full``, ``suite``."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import sanity_function

from plumbline.measure.reframe import SuiteTest


@rfm.simple_test
class suite_integrity(SuiteTest):
    """Every expected test loads and every reference file of the site exists."""

    tags = {"suite", "quick", "full"}
    module = "plumbline.measure.reframe.integrity"

    @sanity_function
    def is_whole(self):
        """The line that the check prints only when it found no fault."""
        return sn.assert_found(r"^suite is whole$", self.stdout, self.first_fault())
