"""Sites: the folders below ``site-configs/`` (``site.yaml``, topologies, references), and the tests of the suite."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from plumbline import mpi, schedulers
from plumbline.base import csv_input, paths, schemas, terminal
from plumbline.base.errors import PlumbError, pattern_fault, pick, require
from plumbline.base.schemas.site import MPIRUN, Partition, Site
from plumbline.schedulers.names import access

FILE = "site.yaml"
#: further scheduler options of all jobs, a line each: for ReFrame on this host
OPTIONS = "PLUMB_SCHEDULER_OPTIONS"
#: the family of the suite's check of itself, which measures nothing
SUITE = "suite"
#: names of sites, which are also names of files and folders everywhere
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")
_named: list[str] = []


class Configuration(Struct, frozen=True, forbid_unknown_fields=True):
    """``config.yaml`` of a person: options of jobs by ``SITE`` or ``SITE:PARTITION``."""

    scheduler_options: dict[str, list[str]] = {}


def use_options(options: Sequence[str]) -> None:
    """Submit all jobs with these scheduler options, too."""
    _named[:] = options


def options() -> list[str]:
    """The scheduler options of all jobs: those of the variable, then those of the command line."""
    return [*os.environ.get(OPTIONS, "").splitlines(), *_named]


def personal(name: str, partition: str | None, scheduler: str) -> list[str]:
    """The scheduler options that whoever submits adds to a partition's: of the file for the site and it, then all.

    None where there are no jobs. Raises :class:`PlumbError` for a file that is not valid.
    """
    file, known = paths.configuration(), Configuration()
    if not schedulers.TABLE[scheduler].has_jobs:
        return []
    if os.access(file, os.R_OK):  # the home may be one of another user
        known = schemas.load("configuration", file, Configuration, "your configuration", "")
    mine = [option for key in (name, f"{name}:{partition}") for option in known.scheduler_options.get(key, [])]
    access(mine, str(file))
    access(options(), "--scheduler-option")
    return [*mine, *options()]


def folder(name: str) -> Path:
    """The folder of site ``name``."""
    return paths.sites() / name


def names() -> list[str]:
    """The sites that have a ``site.yaml``, sorted."""
    return sorted(entry.parent.name for entry in paths.sites().glob(f"*/{FILE}"))


def expected() -> set[str]:
    """The names of all tests, from ``reframe-tests/expected.txt``."""
    file = paths.suite() / "reframe-tests" / "expected.txt"
    return set(csv_input.text(file, "list of tests", "restore the file").split())


def family(test: str) -> str:
    """The family that a test's references are filed under: its name up to the first underscore."""
    return test.partition("_")[0]


def families(tests: Collection[str] | None = None) -> list[str]:
    """The families of ``tests`` (default: :func:`expected`) that measure something, sorted."""
    return sorted(set(map(family, expected() if tests is None else tests)) - {SUITE})


def references_file(name: str, test: str) -> Path:
    """The file for the references of ``test``'s family in site ``name``."""
    return folder(name) / "references" / f"{family(test)}.yaml"


def references_missing(name: str, test: str) -> str | None:
    """The cure for the reference file that ``test``'s family lacks in site ``name``; None where it has one.

    ``plumb site init`` makes the files of the suite's own tests only.
    """
    file = references_file(name, test)
    lines = f"'schema: 1', 'test: {family(test)}' and 'references: []'"
    return None if file.is_file() else f"reference file is missing: {file}: write it with the lines {lines}"


def load(name: str) -> Site:
    """``site.yaml`` of site ``name``, with the options that whoever submits adds to each partition's ``access``.

    Every command that submits a job takes its partition from here. Raises :class:`PlumbError` unless the file is valid
    and its topology files exist, and for options on the command line where this host's site has no jobs.
    """
    if not NAME.fullmatch(name):
        raise PlumbError(
            f"'{name[:40]}' cannot be the name of a site", str(paths.sites()), "plumb site list names them"
        )
    file = folder(name) / FILE
    site = check(schemas.read_yaml(file, f"site '{name}'", f"plumb site init --site {name}"), str(file))
    if site.name != name:
        raise PlumbError(f"the site calls itself '{site.name}'", str(file), f"its folder is called '{name}'")
    for part in site.partitions:
        if not (file.parent / part.topology).is_file():
            raise PlumbError(
                f"partition {part.name} has no topology file {part.topology}",
                str(file),
                f"plumb site init --site {name} captures this host's",
            )
    if _named and is_here(site) and not any(schedulers.TABLE[part.scheduler].has_jobs for part in site.partitions):
        raise PlumbError(f"site {name} has no batch system", "--scheduler-option", "leave it out")
    parts = [
        structs.replace(part, access=[*part.access, *personal(name, part.name, part.scheduler)])
        for part in site.partitions
    ]
    return structs.replace(site, partitions=parts)


def load_all() -> list[Site]:
    """Every site, sorted by name."""
    return [load(name) for name in names()]


def is_here(site: Site) -> bool:
    """Whether a site claims this host, as ReFrame decides it: one of its patterns matches the host's name."""
    return any(re.match(pattern, socket.gethostname()) for pattern in site.hostnames)


def claiming(sites: list[Site]) -> Site | None:
    """The one of ``sites`` that claims this host: the first, as ReFrame chooses; None if none does."""
    return next((site for site in sites if is_here(site)), None)


def here() -> str:
    """The name of the site that claims this host; raises :class:`PlumbError` if none does, or a site is not valid."""
    sites = load_all()
    if (claimed := claiming(sites)) is None:
        known = ", ".join(site.name for site in sites) or "none: plumb site init makes one"
        raise PlumbError(f"no site claims this host, {socket.gethostname()}", str(paths.sites()), f"known: {known}")
    return claimed.name


def partition(site: Site, name: str) -> Partition:
    """The partition that is called ``name``; raises :class:`PlumbError` if there is none."""
    known = {part.name: part for part in site.partitions}
    return pick(known, name, f"site {site.name} has no partition '{name}'", str(folder(site.name) / FILE))


def chosen(name: str | None, part: str | None) -> tuple[Site, Partition]:
    """A site, by default that of this host, and one of its partitions, by default the first."""
    site = load(name or here())
    return site, partition(site, part or site.partitions[0].name)


def _check_texts(value: Any, where: str, key: str = "") -> None:
    """Raise :class:`PlumbError` for a text that is not one line that can be shown: it would spoil what names it."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        _check_texts(str(name), where, f"{key}.{name}")
        _check_texts(member, where, f"{key}.{name}")
    if isinstance(value, str) and terminal.steers(value):
        raise PlumbError(f"{key.removeprefix('.')} has a character that cannot be shown", where, "write it in one line")


def check(document: dict[str, Any], where: str) -> Site:
    """The site that ``document`` describes.

    Raises :class:`PlumbError` for the first unknown key or word, with a suggestion, or else for the first wrong value.
    """
    site = schemas.convert("site", document, Site, where)
    _check_texts(document, where)
    for pattern in site.hostnames:
        if fault := pattern_fault(pattern):
            raise PlumbError(f"hostnames: {fault}", where, "correct it")
    for number, part in enumerate(site.partitions):
        _check_words(part, f"partitions[{number}]", where)
        if part.name in (earlier.name for earlier in site.partitions[:number]):
            raise PlumbError(f"two partitions are called '{part.name}'", where, "rename one")
        topology = Path(part.topology)
        if topology.is_absolute() or ".." in topology.parts:
            raise PlumbError(f"topology '{topology}' lies outside the site folder", where, "name a file inside it")
    return site


def _check_words(part: Partition, place: str, where: str) -> None:
    """Raise :class:`PlumbError` for a word of ``part`` that no scheduler or MPI library has, or not its scheduler."""
    launchers = schedulers.RANK_LAUNCHERS
    known: Mapping[str, Collection[str]] = {
        "scheduler": schedulers.TABLE, "launcher": (MPIRUN, *launchers), "MPI family": mpi.TABLE,
    }  # fmt: skip
    families = [("MPI family", family) for name in launchers for family in getattr(part, f"{name}_mpi")]
    for key, word in (("scheduler", part.scheduler), ("launcher", part.launcher), *families):
        require(word, known[key], f"{place}: {key} '{word}' is unknown", where)
    table, launcher = schedulers.TABLE, launchers.get(part.launcher)
    for key, is_set, takers in (
        ("launcher", launcher, [name for name in table if launcher and table[name].rank_launcher is launcher[0]]),
        ("hosts", part.hosts, [name for name in table if not table[name].has_jobs]),
    ):
        if is_set and part.scheduler not in takers:
            raise PlumbError(
                f"{place}: {key} goes with scheduler {' and '.join(takers)} alone, not with '{part.scheduler}'",
                where,
                "correct or remove one of them",
            )
    if len(set(part.hosts)) < len(part.hosts):
        raise PlumbError(f"{place}: hosts names a host twice", where, "remove one")
