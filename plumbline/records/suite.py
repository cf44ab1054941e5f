"""Which state of the suite made a record."""

from __future__ import annotations

from typing import Any

import plumbline
from plumbline.base import git
from plumbline.base.errors import PlumbError


def describe() -> dict[str, Any]:
    """Version, git commit and whether tracked files were changed; commit and dirty are None outside a git checkout.

    Where git does not answer for the checkout they are None too, and ``unknown`` says why, with the cure.
    """
    found: dict[str, Any] = {"version": plumbline.__version__, "commit": None, "dirty": None}
    if not git.is_checkout():
        return found
    try:
        found["commit"] = git.commit()
        found["dirty"] = bool(git.run("status", "--porcelain", "--untracked-files=no"))
    except PlumbError as error:
        found["unknown"] = str(error)
    return found
