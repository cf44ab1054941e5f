"""This host as a machine with other caches, beside which small arrays are large: for the driver, not for ranks."""

import os
import re
from pathlib import Path

import pytest

from plumbline.base import paths
from plumbline.host import binder

#: plumb-bind that reads a topology where it is asked for one; what it starts in a rank is on this host as it is
BINDER = """#!/bin/sh
case " $* " in *" -- "*) ;; *) export HWLOC_XMLFILE='{topology}' HWLOC_THISSYSTEM=1 ;; esac
exec '{program}' "$@"
"""


def pretend(folder: Path, cache_bytes: int, patch: pytest.MonkeyPatch) -> None:
    """Give every cache of this host ``cache_bytes``, by C tools of its own in ``folder``."""
    text = re.sub(r'cache_size="[0-9]+"', f'cache_size="{cache_bytes}"', binder.ask(["--export-topology", "-"]))
    topology = folder / "topology.xml"
    topology.write_text(text)
    real, made = paths.tools(), folder / "tools"
    (made / "bin").mkdir(parents=True)
    for entry in (*real.iterdir(), *(real / "bin").iterdir()):
        if entry.name not in ("bin", paths.binder().name):
            (made / entry.relative_to(real)).symlink_to(entry)
    program = made / "bin" / paths.binder().name
    program.write_text(BINDER.format(topology=topology, program=os.path.realpath(paths.binder())))
    program.chmod(0o755)
    patch.setenv("PLUMB_TOOLS", str(made))
