"""The launch lines of a Markdown page, each run with a tiny program in place of its own.

Only the launcher and options that place ranks are run, without a shell: what else a line has is not run, and said so.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plumbline import mpi, proof
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.proof import Proof

#: launchers that are run
LAUNCHERS = {"mpirun", *mpi.WORDS}
#: option, without its dashes -> the number of its values; none of them can start a program of its own
OPTIONS = {
    name: count
    for count, names in enumerate((
        """exact exclusive overlap u unbuffered l label K kill-on-bad-exit report-bindings oversubscribe nooversubscribe
        use-hwthread-cpus nolocal bynode bycore genvall quiet""",
        """n np N c ntasks nodes cpus-per-task ntasks-per-node ntasks-per-core ntasks-per-socket cpu-bind cpu_bind m
        mem-bind distribution hint threads-per-core p partition A account t time mem mem-per-cpu mem-per-gpu gpus
        gpus-per-node gpus-per-task cores-per-task cpus-per-gpu gpu-bind G gres mpi J job-name q qos queue C constraint
        reservation w nodelist map-by bind-to rank-by npernode npersocket ppn perhost H host hosts genvlist cpu-set x
        o setopt""",
        "mca genv env",
    ))
    for name in names.split()
}  # fmt: skip
#: variables that place threads
VARIABLE = re.compile(r"(?:OMP|KMP|GOMP|MKL|OPENBLAS)_[A-Z_]+(?:=[\w,:{}()-]*)?")
#: option that sets something -> that which places threads or ranks, or chooses how ranks talk
SETS = {
    **dict.fromkeys(("x", "genv", "env", "genvlist"), VARIABLE),
    "mca": re.compile(r"(?:btl|pml|mtl|coll|osc|rmaps|hwloc_base)(?:_[a-z_]+)?"),
    **dict.fromkeys(("o", "setopt"), re.compile(r"[cg]pu-affinity=[\w:;-]+")),
}
VALUE = re.compile(r"[\w.,:=+/@%\[\]-]*")


class Line(NamedTuple):
    """A launch line: its ``number`` in the page, ``words`` up to the program, ``variables``, or why it is not run."""

    number: int
    text: str
    words: list[str]
    variables: list[str]
    fault: str = ""


def lines(page: str) -> Iterator[Line]:
    """The launch lines of a Markdown page; those that go on in the next one are joined."""
    begin, whole = 0, ""
    for number, text in enumerate(page.splitlines(), 1):
        whole, begin = f"{whole} {text.strip()}".strip(), begin or number
        if whole.endswith("\\"):
            whole = whole[:-1].rstrip()
            continue
        line = re.sub(r"^(?:[-*>] )?`?(?:\$ |# )?", "", whole).rstrip("`")
        if re.match(rf"(?:[A-Z_]+=\S+ )*(?:{'|'.join(map(re.escape, LAUNCHERS))}) +-", line):
            yield _line(begin, line)
        begin, whole = 0, ""


def _line(number: int, text: str) -> Line:
    variables: list[str] = []
    try:
        rest = shlex.split(text, comments=True)
        while "=" in rest[0]:
            _require(VARIABLE.fullmatch(rest[0]), f"it sets {rest[0]}")
            variables.append(rest.pop(0))
        words = [rest.pop(0)]
        words += [] if words[0] in LAUNCHERS else [rest.pop(0)]
        while rest and rest[0].startswith("-") and rest[0] != "--":
            words += _option(rest)
    except ValueError as error:
        return Line(number, text, [], [], str(error))
    return Line(number, text, words, variables)


def _option(rest: list[str]) -> list[str]:
    """The option at the begin of ``rest`` with its values, which are taken from there."""
    word = rest.pop(0)
    name, equals, value = word.lstrip("-").partition("=")
    if name not in OPTIONS and re.fullmatch(r"-[nNcpAtJGqCw][\w.,:-]+", word):  # -n4
        name, equals, value = word[1], "=", word[2:]
    _require(name in OPTIONS, f"{word} is none of the options that place ranks")
    count = 0 if equals else OPTIONS[name]
    _require(len(rest) >= count, f"{word} has no value")
    values, rest[:count] = rest[:count], []
    for each in [*values, value]:
        _require(VALUE.fullmatch(each), f"{each!r} needs a shell, or is to be filled in")
    if name in SETS and (names := values or [value]):
        _require(all(map(SETS[name].fullmatch, names[0].split(","))), f"it sets {names[0]}")
    return [word, *values]


def _require(holds: object, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


def run(line: Line, work: Path | None) -> Proof:
    """The proof of a line with a tiny program; raises :class:`PlumbError` where the launcher fails."""
    program = [*paths.python(), str(Path(__file__).with_name("tiny.py"))]
    with tempfile.TemporaryDirectory(prefix="plumb-lint-") as folder:
        done = proof.run(["env", *line.variables, *line.words, *program], work=work, output=Path(folder))
        if done.status:
            lines = Path(folder, "stderr").read_text(encoding="utf-8", errors="replace").split("\n")
            raise PlumbError(f"it failed, exit status {done.status}: {lines[0]}", line.text)
    return done


def summary(done: Proof) -> str:
    """The ranks of a line and their places."""
    threads = ", ".join(map(str, sorted({len(rank.threads) for rank in done.ranks})))
    return f"{counted(len(done.ranks), 'rank')}, threads of each: {threads}; rank, host and CPUs: {done.rank_map}"
