"""Somebody else's ReFrame tests, each of which is proven."""

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable
from reframe.core.launchers import LauncherWrapper

from plumbline.proof import Proven


class Theirs(Proven, rfm.RunOnlyRegressionTest):
    valid_systems, valid_prog_environs = ["theirs:mpirun"], ["builtin"]
    executable, executable_opts, num_tasks = os.environ["PI"], ["--intervals", "10M"], 2
    placement = "core"
    binding = variable(str, value="core")

    @run_before("run")
    def choose(self):
        self.job.launcher.options = ["--bind-to", self.binding]

    @sanity_function
    def is_pi(self):
        return sn.assert_found("pi", self.stdout)

    @performance_function("1")
    def one(self):
        return 1


@rfm.simple_test
class Right(Theirs):
    pass


@rfm.simple_test
class Wrong(Theirs):
    binding = "none"


@rfm.simple_test
class Ours(Theirs):
    binding, plumb_bind = "none", True


@rfm.simple_test
class Hooks(Theirs):
    # makes a launch of its own, takes another launcher, and sets last what to prove: all of that is seen
    placement = None

    @run_before("run")
    def make(self):
        self.prerun_cmds = [f"{self.job.launcher.run_command(self.job)} {self.executable} --intervals 1M"]
        self.job.launcher.options = ["--bind-to", "none"]
        self.job.launcher = LauncherWrapper(self.job.launcher, "env")
        self.plumb_bind, self.placement = True, "core"


@rfm.simple_test
class WrongAlone(Theirs):
    valid_systems, executable = ["theirs:local"], "taskset"
    executable_opts = ["-c", os.environ["AWAY"], os.environ["PI"]]  # noqa: RUF012 - a variable of ReFrame
