"""The points of a scaling curve: how many threads, ranks or nodes, and the command of each."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.host.machine import Machine

WHERE = "plumb scale"
#: lists with a name of their own
LADDER, DOUBLING = "ladder", "doubling"
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_NAMES = {"threads", "ranks", "nodes", "n"}
#: what integer arithmetic of a placeholder may do
_OPERATIONS = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.FloorDiv: int.__floordiv__,
    ast.Mod: int.__mod__,
}
#: no number of a command is larger
_LARGEST = 1 << 62


def ladder(machine: Machine) -> list[int]:
    """Numbers of cores at which a node changes: powers of two, and a whole L3 cache, NUMA node, socket and node."""
    return sorted({*doubling(len(machine.cores)), *itertools.chain(*_sizes(machine).values())} - {0})


def doubling(most: int) -> list[int]:
    """Powers of two up to ``most``, and ``most``."""
    powers = itertools.takewhile(lambda power: power < most, (1 << place for place in range(64)))
    return [*powers, most]


def kind(words: Sequence[str]) -> str:
    """``nodes`` or ``ranks`` where the command has a placeholder with them, else ``threads``."""
    return next((name for name in ("nodes", "ranks") if name in _placeholders(words)), "threads")


def _placeholders(words: Sequence[str]) -> str:
    return " ".join(inner for word in words for inner in _PLACEHOLDER.findall(word))


def splits(words: Sequence[str], cores: int) -> list[int]:
    """The numbers of ranks that divide ``cores``, for a command with ranks and threads."""
    if not 2 <= cores <= 1_000_000:
        raise PlumbError(f"{cores} cores cannot be split", f"{WHERE} --split", "a number from 2 on")
    if lacks := [name for name in ("ranks", "threads") if name not in _placeholders(words)]:
        raise PlumbError(
            f"a split needs {{{lacks[0]}}} in the command",
            f"{WHERE} --split",
            "mpirun -n {ranks} --map-by slot:PE={threads} -x OMP_NUM_THREADS={threads} ./program",
        )
    return [ranks for ranks in range(1, cores + 1) if cores % ranks == 0]


def numbers(spelling: str, machine: Machine, kind: str, nodes: int = 0) -> list[int]:
    """The numbers of ``kind`` (threads, ranks or nodes) that ``spelling`` asks for: a list, ``ladder`` or ``doubling``.

    ``nodes`` are those of this job, 0 outside of one. Raises :class:`PlumbError` for what is no list of different whole
    numbers, and for more threads than CPUs, or nodes than the job has.
    """
    option = f"{WHERE} --counts"
    most, limit, place = {
        "threads": (len(machine.cores), len(machine.cpus), f"this host has {len(machine.cpus)} CPUs"),
        "ranks": (len(machine.cores), 0, ""),
        "nodes": (max(nodes, 1), nodes, f"this job has {nodes}"),
    }[kind]
    whole = {LADDER: ladder(machine) if kind != "nodes" else doubling(most), DOUBLING: doubling(most)}.get(spelling)
    words = [str(count) for count in whole] if whole else spelling.split(",")
    if wrong := [word for word in words if not re.fullmatch(r"[1-9]\d{0,6}", word.strip())]:
        message = f"'{wrong[0]}' is no whole number from 1 to 9999999"
        raise PlumbError(message, option, f"a list such as 1,2,4, or {LADDER}, or {DOUBLING}")
    counts = sorted(map(int, words))
    if twice := next((count for count, following in itertools.pairwise(counts) if count == following), None):
        raise PlumbError(f"{twice} stands there twice", option, "name each number once")
    if len(counts) < 2:
        raise PlumbError("one point is no curve", option, "name at least two numbers")
    if counts[-1] > limit > 0:
        raise PlumbError(f"{counts[-1]} {kind}, and {place}", option, f"at most {limit}")
    return counts


def commands(
    words: Sequence[str], kind: str, counts: Sequence[int], values: Sequence[str], weak: bool, cores: int = 0
) -> list[list[str]]:
    """The command of each of ``counts``: ``{threads}``, ``{ranks}``, ``{n}`` and arithmetic with them are replaced.

    ``{value}`` is that of ``values``, one for each; ``{threads}`` of ranks are their share of ``cores``. Raises
    :class:`PlumbError` where the commands should differ and do not, where an expression has no whole value, and for
    values of another number than ``counts`` or without a place.
    """
    if any("{value}" in word for word in words) != bool(values):
        raise PlumbError("{value} in the command and --values go together", WHERE, "write both, or neither")
    if values and len(values) != len(counts):
        raise PlumbError(
            f"{counted(len(values), 'value')} for {len(counts)} points ({', '.join(map(str, counts))})",
            f"{WHERE} --values",
            "give one for each point",
        )
    names = [{kind: count, "n": count, **({"threads": cores // count} if cores else {})} for count in counts]
    each = [
        [_filled(word, names[place], values[place] if values else None) for word in words]
        for place in range(len(counts))
    ]
    same = next((pair for pair in itertools.combinations(range(len(each)), 2) if each[pair[0]] == each[pair[1]]), None)
    if same and (weak or kind != "threads"):
        both = f"{counts[same[0]]} and {counts[same[1]]} {kind}"
        raise PlumbError(
            f"the command is the same with {both}",
            " ".join(words),
            f"write {{{kind}}} where its size is"
            if weak
            else f"write {{{kind}}} where its launcher takes their number",
        )
    return each


def _filled(word: str, names: Mapping[str, int], value: str | None) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match[1] == "value" and value is not None:
            return value
        try:
            tree = ast.parse(match[1], mode="eval").body
            known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        except (SyntaxError, ValueError, RecursionError):
            known = set()
        if not known or not known <= _NAMES:
            return match[0]  # braces of the command's own
        if not known <= names.keys():
            kind = next(iter(names))
            raise PlumbError(f"{match[0]} has no number, as the curve is over {kind}", word, f"write {kind} or n there")
        try:
            return str(_value(tree, names))
        except (ArithmeticError, ValueError) as error:
            message = f"{{{match[1]}}} has no whole value with {', '.join(f'{names[name]} {name}' for name in known)}"
            raise PlumbError(f"{message}: {error}", word, "use + - * // % and whole numbers") from error

    return _PLACEHOLDER.sub(replaced, word)


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and (operation := _OPERATIONS.get(type(node.op))):
        value = operation(_value(node.left, names), _value(node.right, names))
        if abs(value) <= _LARGEST:
            return value
        raise ValueError("it is too large")
    raise ValueError("not an arithmetic expression")


def starts(counts: Iterable[int], machine: Machine) -> dict[int, str]:
    """The part of the machine that each of ``counts`` cores fills as a whole: ``one L3 cache``, ``two sockets``."""
    names = {size: f"one {name}" for name, sizes in _sizes(machine).items() if len(sizes) == 1 for size in sizes}
    return {count: names[count] for count in counts if count in names}


def _sizes(machine: Machine) -> dict[str, set[int]]:
    """The numbers of cores that the parts of each kind have, the smallest kind first."""
    cores = {cpu: number for number, core in enumerate(machine.cores) for cpu in core.cpus}
    kinds = {
        "L3 cache": [part.cpus for part in machine.l3s],
        "NUMA node": [part.cpus for part in machine.numa_nodes],
        "socket": [part.cpus for part in machine.packages],
        "node": [machine.cpus],
    }
    return {name: {len({cores[cpu] for cpu in cpus if cpu in cores}) for cpus in each} for name, each in kinds.items()}
