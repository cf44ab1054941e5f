"""Sites: the folders below ``site-configs/`` and what onboarding writes into them."""

from plumbline.site.ceilings_file import ceilings_of
from plumbline.site.site import (
    claiming,
    folder,
    here,
    is_here,
    load,
    load_all,
    names,
    partition,
    references_file,
    references_missing,
)

__all__ = [
    "ceilings_of",
    "claiming",
    "folder",
    "here",
    "is_here",
    "load",
    "load_all",
    "names",
    "partition",
    "references_file",
    "references_missing",
]
