"""The transports between the ranks of a launch: what their witnesses saw open at MPI_Finalize."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.witness.model import Witness

#: member of a witness's ``transports`` that counts something -> the word for it in records
COUNTED = {"shm_bytes": "shm", "sysv_bytes": "sysv", "file_bytes": "file", "copies": "cma"}


def between(witnesses: Sequence[Witness]) -> list[str]:
    """The words for what connects the ranks, sorted; empty unless two witnesses at least have ``transports``.

    ``shm``: memory in /dev/shm; ``sysv``: memory of System V; ``file``: a file that is mapped and written; ``cma``:
    copies from the memory of one process to that of another; ``tcp``: a connection of which two ranks have an end
    (those to a launcher are not); any other word is a device file. A transport may be open and unused.
    """
    seen = [item.transports for item in witnesses if item.transports]
    if len(seen) < 2:
        return []
    words = {word for found in seen for member, word in COUNTED.items() if getattr(found, member)}
    words |= {device for found in seen for device in found.devices}
    ends = [pair for found in seen for pair in found.tcp]
    if {(peer, local) for local, peer in ends} & set(ends):
        words.add("tcp")
    return sorted(words)
