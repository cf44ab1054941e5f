"""What a tuner found, as files that the MPI library takes without us, and as the stack ``NAME+tuned``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline import files, mpi, paths
from plumbline.errors import PlumbError
from plumbline.mpi.settings import Configuration
from plumbline.records import store
from plumbline.stacks import manifest as manifests
from plumbline.stacks.tuned import Fingerprint, Tuned, make, suffix


def emit(
    document: dict[str, Any],
    configuration: Configuration,
    fingerprint: Fingerprint,
    session: str,
    directory: Path | None = None,
) -> Path:
    """Write the native files of ``configuration`` and the tuned stack of ``document``; the folder of both.

    It is ``NAME+tuned`` (``NAME+tuned-2n`` for two nodes) in ``directory``, the folder of all stacks by default; an
    earlier one is replaced. Raises :class:`PlumbError` for a stack that is tuned already, a configuration that sets
    nothing, or a foreign folder.
    """
    name = document["name"]
    if document.get("settings"):
        raise PlumbError(f"stack {name} has settings already", "its manifest", "tune the stack that it was made from")
    if configuration == Configuration():
        raise PlumbError("the library's default is no configuration to write down", name, "nothing is to be done")
    folder = (directory or paths.stacks()) / (name + suffix(fingerprint.nodes))
    files.make_anew(folder)
    family = mpi.TABLE[document["mpi"]["family"]]
    settings = family.settings_of(configuration, folder)
    read = [file for file in folder.iterdir() if file.name != files.MARK]
    for file, text in family.native_files(settings).items():
        (folder / file).write_text(text, encoding="utf-8")
    tuned = Tuned(name, store.now(), session, fingerprint, configuration)
    manifests.save(make(document, {item.name: item.value for item in settings}, tuned, read), folder)
    return folder
