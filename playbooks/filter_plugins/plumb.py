"""What the playbooks decide: whether an inventory's values are in order, and which files go which way."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline import schedulers, site
from plumbline.base import schemas
from plumbline.base.errors import PlumbError
from plumbline.schedulers import names

#: a site, a partition: as ``plumb site init`` takes them
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: a folder on the cluster: absolute, nothing that a shell, make or PATH would read as something else
FOLDER = re.compile(r"(/[A-Za-z0-9._][A-Za-z0-9._+@-]*)+")
#: an option of the scheduler; it becomes an argument, and a comment line of job scripts
OPTION = re.compile(r"-[A-Za-z0-9 ._:,=@+/&|*()%~^\[\]-]+")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STACK = re.compile(r"([a-z]+:)?[A-Za-z0-9][A-Za-z0-9._+@-]*")
PROGRAM = re.compile(r"(/?[A-Za-z0-9._][A-Za-z0-9._+-]*)(/[A-Za-z0-9._][A-Za-z0-9._+-]*)*")
#: a file below a folder; what is called otherwise is never carried from machine to machine
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=:@-]*(/[A-Za-z0-9][A-Za-z0-9._+=:@-]*)*")


def faults(values: dict[str, Any]) -> list[str]:
    """What is wrong with the inventory, one line for each value; an empty list if nothing is.

    ``values`` has the keys ``root``, ``here``, ``site``, ``partitions``, ``stacks``, ``python`` and ``environment``.
    """
    found = []
    root = str(values["root"])
    if not values["here"] and (not FOLDER.fullmatch(root) or ".." in root.split("/")):
        found.append(f"plumb_root: {root!r} has to be an absolute path of letters, digits and . _ + @ -")
    if not NAME.fullmatch(str(values["site"])):
        found.append(f"plumb_site: {str(values['site'])!r} has to be letters, digits, _ and -")
    if not PROGRAM.fullmatch(str(values["python"])):
        found.append(f"plumb_python: {str(values['python'])!r} has to be a program or its path")
    found += _environment("plumb_environment", values["environment"])
    for stack in values["stacks"]:
        if not STACK.fullmatch(str(stack)):
            found.append(f"plumb_stacks: {str(stack)!r} has to be a stack such as openmpi or spack:mpich")
    names = [str(part.get("name")) for part in values["partitions"]]
    if not names:
        found.append("plumb_partitions: at least one is needed")
    for name in sorted({name for name in names if names.count(name) > 1}):
        found.append(f"plumb_partitions: two are called {name!r}")
    for part in values["partitions"]:
        found += _partition(part)
    return found


def _partition(part: dict[str, Any]) -> list[str]:
    name = str(part.get("name"))
    place = f"plumb_partitions: {name!r}"
    if not NAME.fullmatch(name):
        return [f"{place} has to be letters, digits, _ and -"]
    found = []
    for option in part.get("access") or []:
        if not OPTION.fullmatch(str(option)):
            found.append(f"{place}: access {str(option)!r} has to be one option such as --partition={name}")
    for host in part.get("hosts") or []:
        if not HOST.fullmatch(str(host)):
            found.append(f"{place}: hosts {str(host)!r} cannot be a host's name")
    kind = part.get("scheduler", "local")
    named = [name for name, scheduler in schedulers.TABLE.items() if not scheduler.has_jobs]
    if part.get("hosts") and not found and kind not in named:
        found.append(
            f"{place}: hosts goes with scheduler {' and '.join(named)} alone; {kind} names its nodes: remove it"
        )
    if part.get("nodes") is not None and int(part["nodes"]) < 1:
        found.append(f"{place}: nodes {part['nodes']} has to be 1 or more")
    if part.get("scheduler") == schedulers.REMOTE.name and not part.get("hosts"):
        found.append(f"{place}: without a scheduler the nodes have to be named: hosts: [node1, node2]")
    return found + _environment(place, part.get("environment") or {})


def _environment(place: str, variables: dict[str, Any]) -> list[str]:
    found = [f"{place}: {str(name)!r} cannot be a variable" for name in variables if not VARIABLE.fullmatch(str(name))]
    for name, value in variables.items():
        if not str(value).isprintable():
            found.append(f"{place}: the value of {str(name)!r} has a character that cannot be printed")
    return found


def commands(partitions: Iterable[dict[str, Any]]) -> list[str]:
    """The programs that the partitions' schedulers need on the login host."""
    kinds = {part.get("scheduler", "local") for part in partitions}
    return sorted({program for kind in kinds for program in schedulers.named(kind).programs})


def job(part: dict[str, Any], command: list[str], seconds: int) -> list[str]:
    """The argument list that runs ``command`` on one node of a partition, waits, and gives up after ``seconds``."""
    access = names.access(str(option) for option in part.get("access") or [])
    hosts = [str(host) for host in part.get("hosts") or []]
    # an interrupt is what the schedulers' programs cancel their waiting job at
    limit = ["timeout", "--signal=INT", "--kill-after=10", str(seconds)]
    return [*limit, *schedulers.named(part["scheduler"]).on_one_node(access, hosts, command)]


def keys(part: dict[str, Any]) -> list[str]:
    """The options of ``plumb site init`` for what a partition of the inventory says beside its name and scheduler."""
    given = [f"--access={option}" for option in part.get("access") or []]
    for name in schedulers.RANK_LAUNCHERS:
        given += [f"--{name}-mpi={family}={kind}" for family, kind in (part.get(f"{name}_mpi") or {}).items()]
    given += [f"--env={name}={value}" for name, value in (part.get("environment") or {}).items()]
    for key in ("nodes", "launcher", "max_pending_s", "max_job_s"):
        if part.get(key):
            given.append(f"--{key.removesuffix('_s').replace('_', '-')}={part[key]}")
    if part.get("hosts"):
        given.append(f"--hosts={','.join(map(str, part['hosts']))}")
    return given


def site_faults(file: str) -> list[str]:
    """What is wrong with a ``site.yaml``, in a line; an empty list if nothing is, or there is none."""
    try:
        if Path(file).exists():
            site.check(schemas.read_yaml(Path(file), "the site file", "correct it"), file)
    except PlumbError as error:
        return [str(error)]
    return []


def sums(found: dict[str, Any], folder: str) -> dict[str, str]:
    """Path below ``folder`` -> checksum, from what ``ansible.builtin.find`` found there; odd names are left out."""
    prefix = folder.rstrip("/") + "/"
    pairs = {item["path"]: item["checksum"] for item in found.get("files", []) if item["path"].startswith(prefix)}
    below = {path[len(prefix) :]: checksum for path, checksum in pairs.items()}
    return {path: below[path] for path in sorted(below) if FILE.fullmatch(path)}


def directions(control: dict[str, str], cluster: dict[str, str], base: dict[str, str]) -> dict[str, list[str]]:
    """Which files go to the cluster, which come from there, and which were changed on both sides since ``base``.

    All three are of :func:`sums`; ``base`` is what both sides had when they were last alike.
    """
    result: dict[str, list[str]] = {"push": [], "fetch": [], "conflict": []}
    for path in sorted(control.keys() | cluster.keys()):
        ours, theirs, before = control.get(path), cluster.get(path), base.get(path)
        if ours == theirs:
            continue
        if theirs is None or (ours is not None and theirs == before):
            result["push"].append(path)
        elif ours is None or ours == before:
            result["fetch"].append(path)
        else:
            result["conflict"].append(path)
    return result


def differing(theirs: dict[str, str], ours: dict[str, str]) -> list[str]:
    """The files of ``theirs`` that ``ours`` lacks or has otherwise."""
    return [path for path, checksum in theirs.items() if ours.get(path) != checksum]


def shown(difference: str) -> str:
    """A difference for people: new files of empty references are only counted."""
    parts = re.split(r"^(?=--- )", difference, flags=re.MULTILINE)
    kept = [part for part in parts if not re.match(r"--- /dev/null\n\+\+\+ .*/references/", part)]
    if len(kept) == len(parts):
        return difference
    last = parts[-1].splitlines()[-1] if parts[-1] not in kept else ""
    return "".join(kept) + f"{len(parts) - len(kept)} new files of empty references\n{last}"


class FilterModule:
    """The filters by the names that playbooks use."""

    def filters(self) -> dict[str, Any]:
        """Name -> function."""
        return {
            "plumb_faults": faults,
            "plumb_commands": commands,
            "plumb_job": job,
            "plumb_keys": keys,
            "plumb_site_faults": site_faults,
            "plumb_sums": sums,
            "plumb_directions": directions,
            "plumb_differing": differing,
            "plumb_shown": shown,
        }
