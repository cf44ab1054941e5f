"""The mixin that proves a test of any ReFrame suite: its launch line stays, and a wrong launch fails its sanity."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import SanityError

from plumbline.base import paths
from plumbline.proof import Proof

#: ``plumb`` by the Python that runs ReFrame, wherever this package lies
_MAIN = "import sys; sys.path.insert(0, {!r}); from plumbline.commands import cli; sys.exit(cli.main())"
#: the proof of each launch, in the stage folder
_PROOFS = "proof.{}.json"
#: ReFrame 4.8 has it by its former name
_Plugin: Any = getattr(rfm, "RegressionTestPlugin", None) or rfm.RegressionMixin


class Proven(_Plugin):
    """Proves where the ranks of a test ran, by ``plumb prove`` before its launcher.

    ``placement`` (docs/placements.md) is compared with; None: only what is wrong under any plan is found. The
    launcher's binding stays, unless the test asks for ours: with ``plumb_bind`` the executable starts by plumb-bind,
    which binds each rank, and the launcher must not bind. A placement that is wrong or not known fails sanity with the
    reasons of the proof, and so does a launch line that the test makes itself, for its ``prerun_cmds``, if it is wrong.
    Then ``verified``, ``proof_id`` and ``rank_map`` can be logged (``check_verified`` and so on); the whole proof of
    each launch is ``proof.*.json`` in the test's stage and output folders.
    """

    placement = variable(str, type(None), value=None, loggable=True)
    plumb_bind = variable(bool, value=False)
    verified = variable(bool, value=False, loggable=True)
    proof_id = variable(str, value="", loggable=True)
    rank_map = variable(str, value="", loggable=True)

    @run_before("run")
    def prove_launches(self) -> None:
        """Prove launch lines that hooks of the test make for its commands before and after the run."""
        self._prove()

    @run_before("run", always_last=True)
    def prove_launch(self) -> None:
        """Prove the launch of the executable, with plumb-bind before it where the test asks for that."""
        test: Any = self  # a plugin has no executable, the test that it is mixed into has
        if self.plumb_bind:
            placed = ["--placement", self.placement] if self.placement else []
            test.executable_opts = [*placed, "--", test.executable, *test.executable_opts]
            test.executable = str(paths.binder())
        test.keep_files = [*test.keep_files, _PROOFS.format("*")]
        self._prove()  # a hook may have replaced the launcher, or set the placement

    def _prove(self) -> None:
        launcher, python, folder = self.job.launcher, shlex.quote(sys.executable), shlex.quote(self.stagedir)
        words = ["-c", _MAIN.format(str(paths.root())), "prove", "--work", self.stagedir]
        words = [shlex.quote(word) for word in [*words, *(["--placement", self.placement] if self.placement else [])]]
        theirs = [launcher.modifier, *launcher.modifier_options] if launcher.modifier else []
        if launcher.modifier == python:  # ours
            theirs = theirs[theirs.index("--") + 1 :]
        file = f'"$(mktemp {folder}/{_PROOFS.format("XXXXXX")})"'  # of each launch its own
        launcher.modifier, launcher.modifier_options = python, [*words, "--output", file, "--", *theirs]

    @run_after("sanity")
    def check_proofs(self) -> None:
        """Fail unless the run was right and no other launch wrong; raises :class:`SanityError` with the reasons."""
        if self.is_dry_run():
            return
        files = sorted(Path(self.stagedir).glob(_PROOFS.format("*")), key=lambda file: file.stat().st_mtime)
        if not files:
            raise SanityError("the launch left no proof: it did not start, or the test does not use its launcher")
        try:
            proofs = [msgspec.json.decode(file.read_bytes(), type=Proof) for file in files]
        except (OSError, msgspec.MsgspecError) as error:
            raise SanityError(f"a launch left no proof: {error}") from None
        executable = Path(cast(Any, self).executable.split()[0]).name
        run = [proof for proof in proofs if executable in {Path(word).name for word in proof.command}] or proofs[-1:]
        self.proof_id, self.rank_map = " ".join(each.id for each in run), " | ".join(each.rank_map for each in run)
        # a hook may launch anything, as a script that prints the binding: not all of it can be known
        for proof in (each for each in proofs if each.verdict == "wrong" or (each in run and not each.verified)):
            raise SanityError(f"placement {proof.verdict}: {'; '.join(proof.reasons)}")
        self.verified = True
