"""Names of nodes, partitions and scheduler options: checked before any of them becomes part of a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from plumbline.errors import PlumbError

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
FOLDED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,\[\]-]*")
PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: more names than this in one folded set are a slip of the pen (``node[1-99999999]``), and would fill the memory
MOST = 200_000


def host(name: str, where: str) -> str:
    """``name`` if it can be a host name; anything else (an option, a shell word) is refused."""
    if not HOST.fullmatch(name):
        raise PlumbError(f"{name!r} cannot be a host name", where, "use letters, digits, '.', '_' and '-'")
    return name


def partition(name: str, where: str) -> str:
    """``name`` if it can be a partition or queue."""
    if not PARTITION.fullmatch(name):
        raise PlumbError(f"{name!r} cannot be a partition", where, "use letters, digits, '.', '_' and '-'")
    return name


def expand(text: str, where: str) -> list[str]:
    """Host names of ``a,b`` or ``node[1-4,7]``, in the order given, each once."""
    if not FOLDED.fullmatch(text):
        raise PlumbError(f"{text!r} cannot be host names", where, "write A,B or node[1-4]")
    try:
        found = NodeSet(text, resolver=RESOLVER_NOGROUP)
        if len(found) > MOST:
            raise PlumbError(f"{text!r} are {len(found)} hosts", where, f"at most {MOST} can be named")
        return [host(str(name), where) for name in found]
    except NodeSetException as error:
        raise PlumbError(f"{text!r} cannot be host names: {error}", where, "write A,B or node[1-4]") from None


def fold(names: Iterable[str]) -> str:
    """Names in one word, such as ``node[1-3,7]``; every name has to be a checked host name."""
    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


def access(options: Iterable[str]) -> list[str]:
    """Scheduler options as words of a command: ``-p main`` and ``--partition main`` are allowed, a bare word is not.

    A word without '-' would be taken for the program to start.
    """
    words = []
    for given in options:
        try:
            parts = shlex.split(given)
        except ValueError as error:
            raise PlumbError(f"{given!r} is not an option: {error}", "--access", "mend the quotes") from None
        first, rest = (parts[0], parts[1:]) if parts else ("", [])
        plain = not any(ord(letter) < 32 for letter in given)
        if not re.fullmatch(r"--?[A-Za-z].*", first) or len(rest) > 1 or rest[:1] == [""] or not plain:
            raise PlumbError(f"{given!r} is not one option", "--access", "write one option each, as --partition=main")
        if rest and rest[0].startswith("-"):
            raise PlumbError(f"{given!r} holds two options", "--access", "write one option each, as --partition=main")
        words += [f"{first}={rest[0]}"] if rest and first.startswith("--") else parts
    return words


def queue(scheduler: str, given: str | None, options: Iterable[str]) -> str | None:
    """The scheduler's own name of the partition: what the access options say, else ``given`` if there are none.

    With options that name no partition, jobs go to the scheduler's default: None.
    """
    words = access(options)
    long, short = ("--partition", "-p") if scheduler in ("slurm", "squeue") else ("--queue", "-q")
    found = None
    for place, word in enumerate(words):
        if word.startswith(f"{long}="):
            found = word[len(long) + 1 :]
        elif word == short and place + 1 < len(words):
            found = words[place + 1]
        elif word.startswith(short) and len(word) > len(short) and not word.startswith("--"):
            found = word[len(short) :]
    if found is None:
        found = None if words else given
    return None if found is None else partition(found, "--partition")
