"""Names of nodes, partitions and scheduler options: checked before any of them becomes part of a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from plumbline.base.errors import PlumbError

# ClusterShell takes as long to import as all the rest, and plumb launch starts before measurements: it is imported
# where it is used.

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
FOLDED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,\[\]-]*")
#: options with more values than one: Grid Engine's parallel environment has a name and its slots
TWO_VALUES = {"-pe": 2}
#: more names than this in one folded set are a typo (``node[1-99999999]``), and would fill the memory
MOST = 200_000


def host(name: str, where: str, kind: str = "host name") -> str:
    """``name`` if it can be a host name, or of another ``kind``, such as a partition.

    Raises :class:`PlumbError` for anything else (an option, a shell word).
    """
    if not HOST.fullmatch(name):
        raise PlumbError(f"{name!r} cannot be a {kind}", where, "use letters, digits, '.', '_' and '-'")
    return name


def expand(text: str, where: str) -> list[str]:
    """Host names of ``a,b`` or ``node[1-4,7]``, in the order given, each once; those of a set in brackets are sorted.

    Raises :class:`PlumbError` for anything else, and for more than :data:`MOST` names.
    """
    if not FOLDED.fullmatch(text) or ",," in text or text.endswith(","):
        raise PlumbError(f"{text!r} cannot be host names", where, "write A,B or node[1-4]")
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        # one by one, because the nodes of a set come sorted
        sets = [NodeSet(word, resolver=RESOLVER_NOGROUP) for word in re.findall(r"(?:\[[^\]]*\]|[^,\[])+|\[", text)]
        count = sum(map(len, sets))
        if count > MOST:
            raise PlumbError(f"{text!r} are {count} hosts", where, f"at most {MOST} can be named")
        return list(dict.fromkeys(host(str(name), where) for node_set in sets for name in node_set))
    except NodeSetException as error:
        raise PlumbError(f"{text!r} cannot be host names: {error}", where, "write A,B or node[1-4]") from None


def fold(names: Iterable[str]) -> str:
    """Names in one word, such as ``node[1-3,7]``; every name has to be a checked host name."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


def words_of(option: str, where: str = "--access") -> list[str]:
    """An option of a partition as words of a command, split as a shell does; :class:`PlumbError` for a bare word."""
    try:
        words = shlex.split(option)
    except ValueError as error:
        raise PlumbError(f"{option!r} is not an option: {error}", where, "close the quotes") from None
    if not words or not re.fullmatch(r"--?[A-Za-z].*", words[0]) or not option.isprintable():
        raise PlumbError(f"{option!r} is not one option", where, "write one option each, as --partition=main")
    return words


def words_of_all(options: Iterable[str]) -> list[str]:
    """Some options of a partition as words of a command; raises as :func:`words_of` does."""
    return [word for option in options for word in words_of(option)]


def access(options: Iterable[str], where: str = "--access") -> list[str]:
    """Scheduler options as words of a command: ``-p main`` and ``--partition main`` are allowed, a bare word is not.

    A word without '-' would be taken for the program to start: it raises :class:`PlumbError`.
    """
    words = []
    for option in options:
        first, *rest = words_of(option, where)
        if (
            len(rest) != TWO_VALUES.get(first, min(len(rest), 1))
            or rest[:1] == [""]
            or (rest and rest[0].startswith("-"))
        ):
            raise PlumbError(f"{option!r} is not one option", where, "write one option each, as --partition=main")
        words += [f"{first}={rest[0]}"] if rest and first.startswith("--") else [first, *rest]
    return words
