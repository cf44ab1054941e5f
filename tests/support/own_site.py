"""The site of this host in a folder of a test, to be changed there."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from plumbline.base import paths


def change(sites: Path, /, *, site: str = "local", of_site: dict[str, Any] | None = None, **members: Any) -> None:
    """Give every partition of a site below ``sites`` the ``members``, and the site those of ``of_site``."""
    file = sites / site / "site.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8")) | (of_site or {})
    for partition in document["partitions"]:
        partition |= members
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def copy(folder: Path, /, **members: Any) -> Path:
    """The folder of sites below ``folder``, with the site of this host, changed, and with settings.py."""
    sites = folder / "sites"
    shutil.copytree(paths.sites() / "local", sites / "local")
    shutil.copy(paths.suite() / "site-configs" / "settings.py", sites)
    change(sites, **members)
    return sites
