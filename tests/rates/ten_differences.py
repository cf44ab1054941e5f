"""Searches of ``plumb why`` between sides that differ in ten ways: what is named where none, one, two or a pair act.

Run as ``python tests/rates/ten_differences.py [--only NAME] [--stack NAME]`` in a checkout that is set up, on an idle
machine. The program is ``ten_differences.c`` beside this file, with two ranks. In each search B differs from A in a
commit, the compiler's flags, two settings of the MPI library, a preloaded library, the placement and four variables;
which of them make it slower is known, because the program was written so. A search is right if it names these, alone
or as a pair that acts together, and nothing else; open if it names a part of them; else wrong.
"""

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from commands import git, show, timed

HERE = Path(__file__).resolve().parent
#: what each difference is in B where it does not make the program slower, and where it does
DIFFERENCES = {
    "code": ("commit:comment", "commit:slower"),
    "build variables": ("build:CFLAGS=-O2 -g", "build:CFLAGS=-O0"),
    "setting smsc": ("setting:smsc=cma", "setting:smsc=^cma"),
    "setting mpi_yield_when_idle": ("setting:mpi_yield_when_idle=false", ""),
    "variable LD_PRELOAD": ("variable:LD_PRELOAD={folder}/harmless.so", "variable:LD_PRELOAD={folder}/memcpy.so"),
    "placement": ("placement:pair:l3", ""),
    "variable MODE": ("variable:MODE=plain", "variable:MODE=safe"),
    "variable CHECKS": ("variable:CHECKS=few", "variable:CHECKS=all"),
    "variable LEVEL": ("variable:LEVEL=1", "variable:LEVEL=9"),
    "variable COLOUR": ("variable:COLOUR=red", ""),
}
PAIR = frozenset({"variable MODE", "variable CHECKS"})
#: a search -> the causes that it has to name
SEARCHES: dict[str, tuple[frozenset[str], ...]] = {
    "none": (),
    "none, again": (),
    "commit": (frozenset({"code"}),),
    "flag of the compiler": (frozenset({"build variables"}),),
    "setting": (frozenset({"setting smsc"}),),
    "preloaded library": (frozenset({"variable LD_PRELOAD"}),),
    "variable": (frozenset({"variable LEVEL"}),),
    "flag and setting": (frozenset({"build variables"}), frozenset({"setting smsc"})),
    "commit and library": (frozenset({"code"}), frozenset({"variable LD_PRELOAD"})),
    "pair of variables": (PAIR,),
    "pair and commit": (PAIR, frozenset({"code"})),
}
#: a library that copies each block twice, and one that does nothing
LIBRARIES = {
    "memcpy": """
#include <stddef.h>
#include <string.h>
void *memcpy(void *to, const void *from, size_t bytes) {
    if (bytes > 65536)
        memmove(to, from, bytes);
    return memmove(to, from, bytes);
}
""",
    "harmless": "int harmless_library = 1;\n",
}


def repository(folder: Path) -> Path:
    """The code, with the branches ``comment`` and ``slower``, and the libraries beside it."""
    code = folder / "code"
    code.mkdir(parents=True)
    shutil.copy(HERE / "ten_differences.c", code / "ten.c")
    figures = {"time": {"pattern": "time: ([0-9.]+) s", "unit": "s", "better": "lower"}}
    program = {"command": "./ten", "figures": figures, "placements": ["core"], "ranks": 2, "threads": 1}
    build = ["mpicc ${CFLAGS:--O2} -fno-builtin -o ten ten.c"]
    document = {"application": "ten", "build": build, "programs": {"ten": {**program, "time_limit_s": 60}}}
    (code / "plumb.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    git(code, "init", "--quiet", "--initial-branch=main")
    git(code, "add", ".")
    git(code, "commit", "--quiet", "--message", "first")
    source = code / "ten.c"
    text = source.read_text(encoding="utf-8")
    for branch, changed in (
        ("comment", f"{text}/* nothing */\n"),
        ("slower", text.replace("ROUNDS 400", "ROUNDS 460")),
    ):
        git(code, "switch", "--quiet", "--create", branch, "main")
        source.write_text(changed, encoding="utf-8")
        git(code, "commit", "--quiet", "--all", "--message", branch)
    for name, program in LIBRARIES.items():
        command = ["gcc", "-O2", "-fno-builtin", "-shared", "-fPIC", "-o", folder / f"{name}.so", "-x", "c", "-"]
        subprocess.run(command, input=program, text=True, check=True)
    return code


def side(acting: frozenset[str], folder: Path) -> str:
    """The side B in which the differences ``acting`` make the program slower, and the others do nothing."""
    unknown = acting - DIFFERENCES.keys()
    assert not unknown, unknown
    return ",".join(pair[name in acting].format(folder=folder) for name, pair in DIFFERENCES.items())


def judged(document: Mapping[str, Any], wanted: tuple[frozenset[str], ...]) -> str:
    """``right``, ``open`` or ``wrong``, with what was named."""
    causes = [one for one in document["causes"] if one["state"] in ("FAIL", "GAIN")]
    named = [members(one["cause"]) for one in causes if one["state"] == "FAIL"]
    gains = len(named) < len(causes)
    if not gains and sorted(map(sorted, named)) == sorted(map(sorted, wanted)):
        return "right"
    said = "; ".join(one["cause"] for one in causes) or "nothing"
    is_open = not gains and all(one in wanted for one in named)
    return f"{'open' if is_open else 'wrong'}: named {said}; {document['line']}"


def members(cause: str) -> frozenset[str]:
    """The differences of a cause: ``variables MODE and CHECKS`` are two."""
    if not cause.startswith("variables "):
        return frozenset({cause})
    return frozenset(f"variable {name}" for name in cause.removeprefix("variables ").replace(" and ", ", ").split(", "))


def searches(names: Sequence[str], stack: str) -> Iterator[tuple[str, dict[str, Any], float, str]]:
    """What each search says, and in how many minutes."""
    with tempfile.TemporaryDirectory() as place:
        code = repository(Path(place))
        for name in names:
            wanted = SEARCHES[name]
            acting: frozenset[str] = frozenset().union(*wanted)
            document, minutes = timed(code, "why", "main", side(acting, code.parent), "--stack", stack)
            yield name, document, minutes, judged(document, wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", choices=SEARCHES, action="append", help="this search; repeated")
    parser.add_argument("--stack", default="openmpi")
    args = parser.parse_args()
    show("what acts", ("launches",), searches(args.only or list(SEARCHES), args.stack), "searches")


if __name__ == "__main__":
    main()
