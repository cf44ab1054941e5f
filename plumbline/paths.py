"""Where things lie. Every path is taken from here, so that a checkout can live anywhere."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """The checkout: ``PLUMB_ROOT``, or the folder that holds this package."""
    return Path(os.environ.get("PLUMB_ROOT") or Path(__file__).resolve().parent.parent)


def build() -> Path:
    """What set-up compiles: ``PLUMB_BUILD`` or ``build/`` in the checkout."""
    return Path(os.environ.get("PLUMB_BUILD") or root() / "build")


def tools() -> Path:
    """Prefix of the C tools (``bin/plumb-bind``, ``lib/libplumbwitness.so``)."""
    return Path(os.environ.get("PLUMB_TOOLS") or build() / "tools")


def stacks() -> Path:
    """Folder of the installed stacks: ``PLUMB_STACKS`` or ``stacks/`` in the checkout."""
    return Path(os.environ.get("PLUMB_STACKS") or root() / "stacks")


def sites() -> Path:
    """Folder of the site folders: ``PLUMB_SITES`` or ``site-configs/`` in the checkout."""
    return Path(os.environ.get("PLUMB_SITES") or root() / "site-configs")


def results() -> Path:
    """Folder of the records: ``PLUMB_RESULTS`` or ``results/`` in the checkout."""
    return Path(os.environ.get("PLUMB_RESULTS") or root() / "results")


def binder() -> Path:
    """The ``plumb-bind`` program."""
    return tools() / "bin" / "plumb-bind"


def witness_library() -> Path:
    """The preloaded witness."""
    return tools() / "lib" / "libplumbwitness.so"
