"""A new machine to try the project on: a bare Debian that has git and make, no Python and no compiler.

It shows what a checkout needs without asking for it: a package that every developer has, a file never committed.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed import image, registry
from testbed.host import BedError, provide, run, say, unsuited
from testbed.layout import ROOT, build

PROJECT = Path("opt/project")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: run in its own mount and process namespaces; "$1" is the root folder, the rest a command. A chroot would do for
#: most commands, but not for those that make or enter mount namespaces: their root is the first one of the namespace
INSIDE = """
mount --bind "$1" "$1"
mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; mount --rbind /sys "$1/sys"
mount -t tmpfs tmpfs "$1/tmp"; mount -t tmpfs tmpfs "$1/run"
cd "$1"; shift; mkdir run/outside; pivot_root . run/outside; umount --lazy run/outside; rmdir run/outside
exec "$@"
"""


def new(root: Path) -> None:
    """Make the machine anew in ``root``, with a clone of HEAD. Raises BedError."""
    lower = image.unpacked("bare")
    run(["rm", "-rf", "--one-file-system", root])
    root.parent.mkdir(parents=True, exist_ok=True)
    run(["cp", "-a", lower, root])
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="ascii")  # every installed machine has one
    run(["git", "clone", "--quiet", ROOT, root / PROJECT])


def inside(root: Path, command: Sequence[str]) -> int:
    """Run a command in the project there, with its own environment; its exit status."""
    registry.hand_over(root)
    variables = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": PATH, **registry.variables(dict(os.environ))}
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    there = ["/usr/bin/env", "-i", *[f"{name}={value}" for name, value in variables.items()]]
    # a shell stays as process 1, which has to reap what other processes leave
    there += ["bash", "-c", f'cd /{PROJECT}; "$@"; exit $?', "bare", *command]
    process = subprocess.Popen([*namespaces, "bash", "-euc", INSIDE, "bare", str(root), *there])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            say("interrupted: waiting for the command to end")  # the terminal has told it too


def main(arguments: Sequence[str]) -> int:
    """The program: the command's exit status, or 2 (one line says why)."""
    parser = argparse.ArgumentParser(
        prog="bare", description="Run a command on a clone of HEAD in a bare Debian (root)."
    )
    parser.add_argument("--keep", action="store_true", help="continue with the machine of the last run")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="default: make test")
    options = parser.parse_args(arguments)
    root = build() / "bare"
    try:
        if problem := unsuited("a bare machine"):
            raise BedError(problem)
        provide()
        if not options.keep or not root.exists():
            new(root)
        return inside(root, options.command or ["make", "test"])
    except BedError as fault:
        print(f"bare: {' '.join(str(fault).split())}", file=sys.stderr)
        return 2
