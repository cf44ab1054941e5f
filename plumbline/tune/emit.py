"""What a tuner found, as files that the MPI library takes without us, and as the stack ``NAME+tuned``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from plumbline import mpi
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.mpi.settings import Configuration, Setting
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
    earlier one is replaced once the new one is whole. Raises :class:`PlumbError` for a stack that is tuned already, a
    configuration that sets nothing, a foreign folder, or what cannot be written.
    """
    name = document["name"]
    if document.get("settings"):
        raise PlumbError(f"stack {name} has settings already", "its manifest", "tune the stack that it was made from")
    if configuration == Configuration():
        raise PlumbError("the library's default is no configuration to write down", name, "nothing is to be done")
    folder = (directory or paths.stacks()) / (name + suffix(fingerprint.nodes))
    files.refuse_foreign(folder)
    fresh = folder.with_name(f".{folder.name}.new")
    with files.writing(f"stack {folder.name}", folder):
        try:
            files.make_anew(fresh)
            family = mpi.TABLE[document["mpi"]["family"]]
            settings = tuple(_moved(item, fresh, folder) for item in family.settings_of(configuration, fresh))
            read = [file for file in fresh.iterdir() if file.name != files.MARK]
            for file, text in family.native_files(settings).items():
                (fresh / file).write_text(text, encoding="utf-8")
            tuned = Tuned(name, store.now(), session, fingerprint, configuration)
            made = make(document, {item.name: item.value for item in settings}, tuned, read)
            made["loads"]["files"] = {
                _as_in(fresh, folder, file): digest for file, digest in made["loads"]["files"].items()
            }
            manifests.save(made, fresh)
            with files.replaced(folder, fresh):
                pass
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    return folder


def _moved(item: Setting, fresh: Path, folder: Path) -> Setting:
    """A setting that names a file of ``fresh`` names it in ``folder``."""
    return Setting(item.name, _as_in(fresh, folder, item.value))


def _as_in(fresh: Path, folder: Path, value: str) -> str:
    return str(folder / Path(value).name) if Path(value).parent == fresh else value
