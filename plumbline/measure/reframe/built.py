"""An application that is built, as tests that ReFrame can run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from plumbline import site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.measure.application import build, model
from plumbline.measure.application.run import VARIABLE, Runnable
from plumbline.measure.application.source import Source
from plumbline.measure.reframe.campaign import Tests
from plumbline.stacks import abi
from plumbline.stacks import manifest as manifests


def prepared(file: Path, state: Source, stacks: Sequence[str], folder: Path, say: Callable[[str], None]) -> Tests:
    """The tests of the application of ``file`` in a ``state`` of its code, built with each of ``stacks``.

    Their list for ReFrame is written to ``folder``.
    """
    builds = [build.build(file, state, manifests.load(name), say) for name in stacks]
    runnable = Runnable.of(builds)
    listing = folder / f"{state.key}.json"
    files.replace(listing, msgspec.json.encode(runnable).decode())
    return Tests([Path(__file__).with_name("applications.py")], runnable.application, [], {VARIABLE: str(listing)})


def offered_stacks(file: Path | None) -> list[str]:
    """The stacks that this host's site offers and that the application of ``file``, if there is one, can use.

    Raises :class:`PlumbError` if there is none.
    """
    here = site.claiming(site.load_all())
    if here is None:
        raise PlumbError("no site is configured for this host", str(paths.sites()), f"{paths.setup()} makes one")
    offered = dict.fromkeys(name for part in here.partitions for name in part.stacks)
    if not offered:
        raise PlumbError("the site offers no stack", str(paths.sites()), "plumb stack install makes some")
    if file is None or model.load(file).mpi_abi == "stack":
        return list(offered)
    stacks = [name for name in offered if abi.library(manifests.load(name))]
    if not stacks:
        fault = f"no stack of the site has the standard MPI ABI ({abi.LIBRARY})"
        raise PlumbError(fault, ", ".join(offered), f"{paths.setup()}, or leave mpi_abi out of {model.FILE}")
    return stacks


def first_stack(file: Path | None, say: Callable[[str], None]) -> str:
    """The first of :func:`offered_stacks`, which is said."""
    name = offered_stacks(file)[0]
    say(f"stack {name}, the first that the site offers (--stack NAME takes another)")
    return name
