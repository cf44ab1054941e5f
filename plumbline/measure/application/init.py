"""A plumb.yaml for a command line: three runs of it are read, as are the files of its build, and nothing else is known.

What a run opens below its folder are inputs, what it leaves there is read like its standard output; the witness tells
ranks and threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
import shlex
import shutil
import stat
import struct
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from plumbline import mpi
from plumbline.base import surroundings
from plumbline.base.errors import PlumbError
from plumbline.launch import output, process
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness
from plumbline.measure.application.readings import Reading, checks, figures, readings, unknown
from plumbline.parsers.application import CheckRule
from plumbline.stacks import manifest

RUNS = 3
#: bytes of a file that is read; folders that are watched; files of a folder that are inputs one by one
_MOST_BYTES, _MOST_FOLDERS, _FEW = 1 << 20, 4096, 4
#: a thread that used this part of the busiest one's CPU time works
_WORKS = 0.2
#: inotify(7)
_READ, _WRITTEN, _OPENED, _FOLDER, _EVENT = 0x1, 0x2, 0x20, 0x40000000, struct.Struct("iIII")
#: a number or a date in a name
_DATED = re.compile(r"(\d(?:[\d_.:-]*\d)?)")
#: files of no interest: caches, hidden ones
_ASIDE = re.compile(r"(^|/)(\.|__pycache__/)|\.pyc$")


class Run(NamedTuple):
    """A run: its standard output, the texts of files that it wrote, its ranks, and its seconds.

    ``inputs`` it opened below its folder and left as they were, ``changed`` are those that it read and changed.
    """

    output: str
    written: dict[str, str]
    ranks: list[RankWitness]
    inputs: set[str]
    changed: set[str]
    wall_s: float


def run(words: Sequence[str], folder: Path) -> Run:
    """Run the command ``words`` in ``folder``. Raises :class:`PlumbError` if it cannot be started, or fails."""
    before, watch = _states(folder), _Watch(folder)
    feed = Path("/dev/stdin" if stat.S_ISREG(os.fstat(0).st_mode) else os.devnull)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="plumb-init-", ignore_cleanup_errors=True) as place:
        try:
            with feed.open("rb") as stdin:
                around = processes.preloaded(surroundings.of_user(), Path(place))
                done = subprocess.run(words, cwd=folder, env=around, stdin=stdin, stdout=subprocess.PIPE, check=False)
        except OSError as error:
            cure = manifest.that_has(words[0]) or "name a program or its path"
            raise PlumbError(f"cannot start {words[0]}: {error.strerror}", "--", cure) from None
        wall_s = time.monotonic() - began
        seen = processes.observed(processes.documents_in(place)[0])
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        why = output.cause_of(process.Ended("failed", done.returncode, wall_s), [text], who="the command")
        raise PlumbError(why, shlex.join(words), "run it by itself")
    (opened, read), after = watch.names(), _states(folder)
    changed = {name for name, state in after.items() if before.get(name) != state}
    texts = {name: content for name in changed if (content := _text(folder / name)) is not None}
    ranks = list({rank.rank: rank for rank in seen if rank.rank >= 0}.values()) or seen
    known = before.keys() & after.keys()
    return Run(text, texts, ranks, opened & known - changed, read & known & changed, wall_s)


def _states(folder: Path) -> dict[str, tuple[int, int]]:
    """The files below ``folder``, and what changes when they are written."""
    states = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _ASIDE.search(name)]
        for file in (Path(place, name) for name in names):
            if not _ASIDE.search(name := file.relative_to(folder).as_posix()) and file.is_file():
                states[name] = file.stat().st_mtime_ns, file.stat().st_size
    return states


def _text(file: Path) -> str | None:
    """The text of a ``file``; None of one that has other bytes, or too many."""
    content = file.read_bytes() if file.stat().st_size <= _MOST_BYTES else b"\0"
    return None if b"\0" in content else content.decode(errors="replace")


class _Watch:
    """The files below ``folder`` that are opened and read from now on, as inotify(7) reports them."""

    def __init__(self, folder: Path) -> None:
        self._libc, self._folders, self._top = ctypes.CDLL(None), dict[int, Path](), folder
        self._queue = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for place, folders, _ in os.walk(folder):
            folders[:] = [name for name in folders if not _ASIDE.search(f"{name}/")][:_MOST_FOLDERS]
            mark = self._libc.inotify_add_watch(self._queue, os.fsencode(place), _OPENED | _READ | _WRITTEN)
            self._folders[mark] = Path(place)

    def names(self) -> tuple[set[str], set[str]]:
        """The names of those that were opened, and of those that were read before they were written; the watch ends."""
        opened, read, written = set[str](), set[str](), set[str]()
        with contextlib.suppress(OSError):  # nothing is left
            while content := os.read(self._queue, 1 << 16):
                while content:
                    mark, mask, _, length = _EVENT.unpack_from(content)
                    name = os.fsdecode(content[_EVENT.size : _EVENT.size + length].rstrip(b"\0"))
                    content = content[_EVENT.size + length :]
                    if not name or mark not in self._folders or mask & _FOLDER:
                        continue
                    name = (self._folders[mark] / name).relative_to(self._top).as_posix()
                    if mask & _OPENED or name not in written:
                        (opened if mask & _OPENED else written if mask & _WRITTEN else read).add(name)
        os.close(self._queue)
        return opened, read


def outputs(runs: Sequence[Run]) -> dict[str | None, list[str]]:
    """The standard output (None) and each file that all ``runs`` wrote, of each run; a name that differs as a pattern.

    >>> runs = [Run("", {f"log_2026-11-29_10-0{n}.txt": str(n)}, [], set(), set(), 1.0) for n in (1, 2)]
    >>> outputs(runs)
    {None: ['', ''], 'log_*.txt': ['1', '2']}
    """
    texts: dict[str | None, list[str]] = {None: [each.output for each in runs]}
    same = [name for name in runs[0].written if all(name in each.written for each in runs)]
    for name in same:
        every = [each.written[name] for each in runs]
        texts[name] = [text.removeprefix(former) or text for former, text in zip(["", *every], every, strict=False)]
    dated = [{_DATED.sub("*", name): name for name in each.written if name not in same} for each in runs]
    for form in dated[0]:
        names = [every.get(form, "") for every in dated]
        if all(names):
            differs = [len(set(part)) > 1 for part in zip(*map(_DATED.split, names), strict=True)]
            parts = _DATED.split(names[0])
            texts["".join("*" if differing else part for part, differing in zip(parts, differs, strict=True))] = [
                each.written[name] for each, name in zip(runs, names, strict=True)
            ]
    return texts


def program(words: Sequence[str], ranks: Sequence[RankWitness], folder: Path) -> tuple[int, Path]:
    """The place in ``words`` of the program that the ``ranks`` ran, and its file; before it is what starts it."""
    ran = {Path(each.program).resolve() for rank in ranks for each in processes.everyone(rank)}
    files = [folder / word if "/" in word else Path(shutil.which(word) or "/") for word in words]
    usable = [at for at, file in enumerate(files) if file.is_file() and os.access(file, os.X_OK)]
    starters = {*mpi.WORDS, "env"}
    others = [at for at in usable if files[at].name not in starters]
    at = next((at for at in others if files[at].resolve() in ran), (others or [0])[0])
    return at, files[at]


def circumstances(words: Sequence[str], at: int, ranks: Sequence[RankWitness]) -> dict[str, Any]:
    """The keys of the program at word ``at``: MPI, ranks, threads, what binds them, and variables of ``env``."""
    uses_mpi = any(rank.mpi for rank in ranks) if ranks else any(Path(word).name in mpi.WORDS for word in words[:at])
    threads = max(map(_workers, ranks), default=1)
    openmp = any(re.search(r"lib(g|i)?omp\d*\.so", Path(each.path).name) for rank in ranks for each in rank.objects)
    variables = dict(word.split("=", 1) for word in words[:at] if re.fullmatch(r"[A-Za-z_]\w*=.*", word))
    return {
        **({} if uses_mpi else {"mpi": False}),
        **({"ranks": max(1, len(ranks))} if uses_mpi else {}),
        "threads": threads,
        **({"placements": ["compact"]} if threads > 1 else {}),
        **({"binds": "ranks"} if threads > 1 and not openmp else {}),
        **({"environment": variables} if variables else {}),
    }


def _workers(rank: RankWitness) -> int:
    """The threads of a rank that worked."""
    times = [thread.cpu_s for thread in rank.threads]
    working = sum(spent >= _WORKS * max(times) for spent in times)
    ended = sum(thread.cpu_s for thread in rank.ended)
    return max(working, rank.started_at_once or 0) if ended >= _WORKS * processes.cpu_s(rank) else working


def inputs(names: Iterable[str], folder: Path) -> list[str]:
    """The files of ``names`` below ``folder``, many of one folder as that folder; no programs and libraries."""
    kept = [Path(name) for name in sorted(names) if (folder / name).read_bytes()[:4] != b"\x7fELF"]
    counts = Counter(name.parts[0] for name in kept)
    return list(dict.fromkeys(name.parts[0] if counts[name.parts[0]] > _FEW else name.as_posix() for name in kept))


def _cmake(at: Path, built: Path) -> list[str]:
    """As it was configured: what a person chose differs from the option's default, or no option has the name."""
    cache = built / "CMakeCache.txt"
    entries = re.findall(r"^(\w+):(\w+)=(.+)$", cache.read_text(errors="replace") if cache.is_file() else "", re.M)
    lists = "".join(each.read_text(errors="replace") for each in (at / "CMakeLists.txt", *at.glob("cmake/*.cmake")))
    off = set(re.findall(r'\boption\s*\(\s*(\w+)\s+"[^"]*"\s*(?:OFF|FALSE|NO|0)?\s*\)', lists, re.I))
    chosen = {"CMAKE_BUILD_TYPE": "Release"}
    for name, kind, value in entries:
        wrapper = re.fullmatch(r"CMAKE_\w+_COMPILER", name) and Path(value).name.startswith("mpi")
        if wrapper or kind == "UNINITIALIZED" or name in {"CMAKE_BUILD_TYPE"} | (off if value != "OFF" else set()):
            chosen[name] = Path(value).name if wrapper else value
    folder = built.relative_to(at).as_posix() if at in built.parents else "build"
    options = " ".join(shlex.quote(f"-D{name}={value}") for name, value in chosen.items())
    return [f"cmake -S . -B {folder} {options}", f"cmake --build {folder} -j2"]


def _autotools(at: Path, built: Path) -> list[str]:
    log = built / "config.log"
    line = re.search(r"^ +\$ (?:\S*/)?configure(.*)$", log.read_text(errors="replace") if log.is_file() else "", re.M)
    make = [] if (at / "configure").is_file() else ["autoreconf -fi"]
    return [*make, f"./configure{line[1] if line else ''}".strip(), "make"]


#: a file of a build -> what it leaves beside the program, and the lines for it in the folder of both
_BUILDS: tuple[tuple[str, str, Callable[[Path, Path], list[str]]], ...] = (
    ("CMakeLists.txt", "CMakeCache.txt", _cmake),
    ("configure", "config.status", _autotools),
    ("configure.ac", "config.status", _autotools),
    ("meson.build", "meson-private", lambda at, built: ["meson setup build", "meson compile -C build"]),
    ("Cargo.toml", ".rustc_info.json", lambda at, built: ["cargo build --release"]),
    *((file, file, lambda at, built: ["make"]) for file in ("GNUmakefile", "makefile", "Makefile")),
)
#: where pip puts what it builds; of a stack's Python, which may have no pip
PACKAGES = "python-packages"
_PIP = f'pip --python "$(command -v python)" install --quiet --target {PACKAGES} .'
_PYTHON = re.compile(r"python[\d.]*$")


def builds(at: Path, file: Path, read: Sequence[str]) -> list[list[str]]:
    """The lines that may build the program ``file`` of the code in ``at``, the most likely first.

    Such as left their traces nearest to the program are the first; where ``at`` has none, those of the folder of the
    program, or of the one below ``at`` that changed last. Of a program that is no part of it none are known, but for
    Python where its script alone is ``read``: then pip installed the rest of the code.
    """
    if _PYTHON.match(file.name) and sum(name.endswith(".py") for name in read) < 2:
        return [[_PIP]] if any((at / name).is_file() for name in ("pyproject.toml", "setup.py")) else []
    places = [each for each in file.parents if each == at or at in each.parents]
    if not places:
        return []
    below = sorted(filter(Path.is_dir, at.iterdir()), key=lambda each: each.stat().st_mtime, reverse=True)
    top = next((each for each in (at, *places, *below) if any((each / name).is_file() for name, *_ in _BUILDS)), at)
    known = [
        (next((depth for depth, each in enumerate(places) if (each / trace).exists()), len(places)), make)
        for name, trace, make in _BUILDS
        if (top / name).is_file()
    ]
    enter = "" if top == at else f"cd {shlex.quote(top.relative_to(at).as_posix())} && "
    lines = [make(top, places[min(depth, len(places) - 1)]) for depth, make in sorted(known, key=lambda each: each[0])]
    return [[f"{enter}{line}" for line in each] for place, each in enumerate(lines) if each not in lines[:place]]


class Draft(NamedTuple):
    """What the runs of a command show: the ``keys`` of its ``program``, and the choices for the rest, best first."""

    program: str
    keys: dict[str, Any]
    builds: list[list[str]]
    figures: list[list[Reading]]
    checks: list[CheckRule]

    def text(self, application: str, code: str | None, build: list[str], chosen: Sequence[Reading]) -> str:
        """The plumb.yaml with the figures ``chosen``: without one, the time of the whole program."""
        rules: dict[str, Any] = {}
        for each in chosen:
            names = itertools.chain([each.name], (f"{each.name}_{number}" for number in itertools.count(2)))
            rules[next(name for name in names if name not in rules)] = each.figure
        described = {**self.keys, "figures": rules or {"time": {"wall": True}}}
        if self.checks:
            described["checks"] = msgspec.to_builtins(self.checks)
        head = {"application": application, "code": code, "build": build}
        document = {**{key: value for key, value in head.items() if value}, "programs": {self.program: described}}
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
        return f"# All keys: docs/applications.md\n{text}"


def draft(words: Sequence[str], runs: Sequence[Run], folder: Path) -> Draft:
    """What three ``runs`` of the command ``words`` in ``folder`` show."""
    first, texts = runs[0], outputs(runs)
    at, file = program(words, first.ranks, folder)
    real = file.resolve()
    known = [each for name, every in texts.items() for each in readings(every, name, max(run.wall_s for run in runs))]
    word = f"./{real.relative_to(folder)}" if folder in real.parents else words[at] if file.is_absolute() else file.name
    keys = {"command": shlex.join([word, *words[at + 1 :]]), **circumstances(words, at, first.ranks)}
    fed = Path("/dev/stdin").resolve()
    stdin = fed.relative_to(folder).as_posix() if fed.is_file() and folder in fed.parents else ""
    named = [each.name for each in folder.iterdir() if each.name in keys.get("environment", {}).values()]
    read = [*named, *(each for each in inputs(first.inputs - {stdin}, folder) if Path(each).parts[0] not in named)]
    lines = builds(folder, real, read)
    if lines and PACKAGES in lines[0][0]:
        read = [*dict.fromkeys([*read, PACKAGES])]
        keys["environment"] = {**keys.get("environment", {}), "PYTHONPATH": PACKAGES}
    entries = {"inputs": read, "copy": inputs(first.changed, folder), "stdin": stdin}
    keys |= {key: value for key, value in entries.items() if value}
    script = next((each for each in words[at + 1 :] if each.endswith(".py")), "") if _PYTHON.match(real.name) else ""
    proposed = figures(known) or [[each] for each in unknown(known)]
    return Draft(identifier(Path(script).stem or file.stem), keys, lines, proposed, checks(known, texts))


def identifier(text: str) -> str:
    """``text`` as the name of an application or a program."""
    return re.sub("[^a-z0-9_]", "_", text.lower()).lstrip("_0123456789")[:40] or "application"
