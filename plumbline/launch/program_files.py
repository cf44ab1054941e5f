"""The files that a launch runs: unchanged since the session began, and loaded alike in every launch.

The program and libraries that a record's ranks loaded are listed once in the record. Their MPI library is the stack's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plumbline.base import files, units
from plumbline.launch.witness.model import RankWitness, Witness
from plumbline.records.model import Record
from plumbline.stacks import engines
from plumbline.stacks.manifest import Loads

#: words by which a reason is known
WORLD, CHANGED = "MPI_COMM_WORLD has", "was changed since the session began"
#: changed files that one reason names
SHOWN = 3


def in_launch(witness: RankWitness, folder: Path) -> RankWitness:
    """``witness`` with ``{launch}`` for the ``folder`` of its launch in the names of its program and loaded files."""

    def named(path: str) -> str:
        return path.replace(f"{folder.resolve()}/", f"{engines.FOLDER}/", 1)

    objects = [replace(file, path=named(file.path)) for file in witness.objects]
    return replace(witness, program=named(witness.program), objects=objects)


def note(record: Record, seen: Sequence[Witness]) -> list[str]:
    """Add the files that a launch's ranks loaded to ``record``; return how they differ from those of earlier launches.

    A path stands for the same file on all nodes; on several nodes, the time of its last change may differ.
    """
    known = {file.path: file for file in record.loaded}
    one_node = record.placement.nodes == 1
    changed: dict[str, None] = {}
    for file in (file for witness in seen for file in witness.objects):
        first = known.setdefault(file.path, file)
        same_time = file.modified_ns == first.modified_ns or not one_node
        if (file.build_id, file.bytes) != (first.build_id, first.bytes) or not same_time:
            changed[file.path] = None
    record.loaded = list(known.values())
    before = next((rank.program for launch in record.launches for rank in launch.ranks), None)
    others = sorted({witness.program for witness in seen} - {before})
    program = f"the ranks ran {', '.join(others)}, those of the first launch {before}"
    shown = f"loaded other files than before: {units.some([*changed], SHOWN)} changed since the first launch"
    return [program] * bool(before and others) + [shown] * bool(changed)


def other_library(
    loads: Loads | None, ranks: int, seen: Sequence[Witness], outside: Callable[[str], str] = str
) -> list[str]:
    """Why the ranks are not one MPI program of ``ranks`` ranks on the stack's library.

    ``loads`` is that of the stack's manifest. A copy of one of its files, with the same content, is that file. Ranks
    that could not be asked (no MPI, or no stack's library is recorded) give no reason. ``outside``: what the host calls
    a file that the ranks saw.
    """
    worlds = sorted({rank.world for rank in seen if rank.world} - {ranks})
    used = sorted({outside(rank.mpi_library) for rank in seen if rank.mpi_library})
    others = [path for path in used if loads and loads.library and not _is_of(path, loads.files)]
    words = f"{', '.join(others)}, the stack's is {loads.library}" if loads and others else ""
    if not worlds:
        return [f"the program loaded another MPI library: {words}"] if others else []
    sizes = " or ".join(units.counted(size, "rank") for size in worlds)
    why = f"; the program was built for another MPI library: it loaded {words}" if others else ""
    return [f"{WORLD} {sizes}, planned: {ranks}{why}"]


def _is_of(path: str, known: Mapping[str, str]) -> bool:
    try:
        return path in known or files.sha256_once(Path(path)) in known.values()
    except (OSError, ValueError):
        return False


class BuiltFiles(Struct, frozen=True):
    """The files of a build as it left them in ``source``, the copy of the repository; ``folder`` has the plumb.yaml.

    ``states``: :func:`files.states`, by path from ``folder``.
    """

    source: str
    folder: str
    states: dict[str, files.State]

    @classmethod
    def load(cls, mark: Path) -> BuiltFiles | None:
        """Those that a build left in the file ``mark`` beside its copy; None without a complete one, or elsewhere."""
        try:
            with files.opened(mark) as stream:
                built = msgspec.json.decode(stream.read(), type=cls)
        except (OSError, msgspec.MsgspecError):
            return None
        return built if Path(built.source).parent == mark.parent else None

    def differing(self, but: Collection[Path] = ()) -> dict[str, str]:
        """The files, ``but`` some, whose state is not that of the build, each with ``new``, ``changed`` or ``gone``."""
        present = files.states(Path(self.source), Path(self.folder))
        words = {name: "gone" for name in self.states.keys() - present.keys()}
        for name, state in present.items():
            if state != self.states.get(name):
                words[name] = "changed" if name in self.states else "new"
        return {name: words[name] for name in sorted(words) if Path(self.folder, name) not in but}


class Files:
    """Files that must stay as they are: ``ours`` and those ``recorded`` by a stack, with their SHA-256 if it is known.

    Make it before the recorded ones are compared with the manifest: so a change meanwhile is noticed. ``states``: how
    each file looked when it was read last; ``built`` are those of the build of an application.
    """

    def __init__(self, ours: Iterable[Path], recorded: Mapping[Path, str | None]) -> None:
        present = {file: digest for file, digest in {**dict.fromkeys(ours), **recorded}.items() if file.is_file()}
        self.states = {file: files.state(file) for file in present}
        self.recorded = {file: digest or files.sha256_once(file) for file, digest in present.items()}
        self.built: BuiltFiles | None = None

    def of_build(self) -> dict[str, str]:
        """The other files of the build that are not as it left them, as :meth:`BuiltFiles.differing` has them."""
        return self.built.differing(self.recorded) if self.built else {}

    def changes(self) -> list[str]:
        """A line for each file that has changed; a file is read again only if its inode, size or times have changed."""
        return [change for file in self.recorded if (change := self._change(file))]

    def _change(self, file: Path) -> str | None:
        try:
            if (state := files.state(file)) == self.states[file]:
                return None
            if files.sha256(file) != self.recorded[file]:
                return f"{file} {CHANGED}"
        except OSError as error:
            return f"{file} was there when the session began: {error.strerror}"
        self.states[file] = state
        return None
