"""The mixin that proves a test of any ReFrame suite: its launch line stays, and a wrong launch fails its sanity."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec
import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import SanityError

from plumbline.base import paths
from plumbline.proof import Proof

#: ``plumb`` by the Python that runs ReFrame, wherever this package lies
_MAIN = "import sys; sys.path.insert(0, {!r}); from plumbline.commands import cli; sys.exit(cli.main())"


class Proven(rfm.RegressionTestPlugin):
    """Proves where the ranks of a test ran, by ``plumb prove`` before its launcher.

    ``placement`` (docs/placements.md) is compared with; None: only what is wrong under any plan is found. A hook that
    sets it, or ``plumb_bind``, is ``@run_after("setup")``: those before the run may come too late. The
    launcher's binding stays, unless the test asks for ours: with ``plumb_bind`` each rank starts by plumb-bind, which
    binds it, and the launcher must not bind. A placement that is wrong or not known fails sanity with the reasons of
    the proof. Then ``verified``, ``proof_id`` and ``rank_map`` can be logged (``check_verified`` and so on); the whole
    proof is ``proof.json`` in the test's stage and output folders.
    """

    placement = variable(str, type(None), value=None, loggable=True)
    plumb_bind = variable(bool, value=False)
    verified = variable(bool, value=False, loggable=True)
    proof_id = variable(str, value="", loggable=True)
    rank_map = variable(str, value="", loggable=True)

    @run_before("run")
    def prove_launch(self) -> None:
        """Put ``plumb prove`` before the launcher, and plumb-bind before the program where the test asks for it."""
        test: Any = self  # a plugin has no executable, the test that it is mixed into has
        launcher, placed = test.job.launcher, ["--placement", self.placement] if self.placement else []
        if self.plumb_bind:
            test.executable_opts = [*placed, "--", test.executable, *test.executable_opts]
            test.executable = str(paths.binder())
        test.keep_files = [*test.keep_files, "proof.json"]
        words = ["-c", _MAIN.format(str(paths.root())), "prove", *placed, "--work", test.stagedir]
        words = [shlex.quote(word) for word in [*words, "--output", f"{test.stagedir}/proof.json", "--"]]
        modified = [launcher.modifier, *launcher.modifier_options] if launcher.modifier else []
        launcher.modifier, launcher.modifier_options = shlex.quote(sys.executable), [*words, *modified]

    @run_after("sanity")
    def check_proof(self) -> None:
        """Fail where the launch was not right; raises :class:`SanityError` with the reasons."""
        if self.is_dry_run():
            return
        try:
            proof = msgspec.json.decode(Path(self.stagedir, "proof.json").read_bytes(), type=Proof)
        except (OSError, msgspec.MsgspecError) as error:
            raise SanityError(f"the launch left no proof: {error}") from None
        if proof.placement != self.placement:
            raise SanityError(
                f"placement {self.placement} was set too late, the launch was compared with {proof.placement}: "
                "set it in a hook @run_after('setup')"
            )
        self.verified, self.proof_id, self.rank_map = proof.verified, proof.id, proof.rank_map
        if not proof.verified:
            raise SanityError(f"placement {proof.verdict}: {'; '.join(proof.reasons)}")
