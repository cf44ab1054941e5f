"""This host as one that believes its caches to be small: arrays that follow the caches are, too."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from plumbline.base import paths
from plumbline.topology import binder


def believed(folder: Path, cache_bytes: int) -> dict[str, str]:
    """The variables of commands for which all caches of this host have ``cache_bytes``; its site is in ``folder``."""
    topology = re.sub(r'cache_size="[0-9]+"', f'cache_size="{cache_bytes}"', binder.ask(["--export-topology", "-"]))
    (folder / "topology.xml").write_text(topology)
    shutil.copytree(paths.sites(), folder / "sites", symlinks=True)
    (folder / "sites" / "local" / "topology" / "default.xml").write_text(topology)
    return {
        "HWLOC_XMLFILE": str(folder / "topology.xml"),
        "HWLOC_THISSYSTEM": "1",
        "PLUMB_SITES": str(folder / "sites"),
        "PLUMB_BUILD": str(folder / "build"),
        "PLUMB_TOOLS": str(paths.tools()),
        "PLUMB_RESULTS": str(folder / "results"),
    }
