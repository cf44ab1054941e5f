"""The result of a tuning: as native files of the MPI library, as the stack ``NAME+tuned``, and read from a file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.extras.tune.bench import TuningBench
from plumbline.extras.tune.confirm import Confirmed
from plumbline.extras.tune.curves import BARRIER, OPERATIONS
from plumbline.host import binder
from plumbline.measure.session import Say
from plumbline.mpi.settings import Configuration, Knob, Setting
from plumbline.records import store
from plumbline.site import write
from plumbline.stacks import locked
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Fingerprint, Manifest, Tuned
from plumbline.stacks.tuned import fingerprint, make, suffix

#: a value of a knob, or an algorithm
_PLAIN = re.compile(r"[A-Za-z0-9_.:,^+-]+")


class TuningDocument(msgspec.Struct, frozen=True):
    """The part of another tuning's document that this one reads: the proven settings, and where."""

    tuned: Configuration | None
    fingerprint: Fingerprint
    family: str


def brought(file: Path, stack: Manifest) -> tuple[Configuration, str]:
    """The settings in the ``file`` that ``plumb tune --output`` wrote, for ``stack``; and where they were proven.

    Raises :class:`PlumbError` for another file, one without proven settings, one of another MPI library, and one
    that no tuning wrote: with settings that are none of the library's knobs, or values that could be paths.
    """
    cure = "give a file of plumb tune --output FILE.json"
    try:
        document = msgspec.convert(schemas.parse_json(file.read_text(encoding="utf-8")), TuningDocument)
    except OSError as error:
        raise PlumbError(f"cannot read what was tuned: {error.strerror}", str(file), cure) from error
    except (ValueError, msgspec.ValidationError) as error:
        raise PlumbError(f"not what plumb tune wrote: {error}", str(file), cure) from error
    if document.tuned is None:
        raise PlumbError("that tuning proved no settings", str(file), "see its `result`")
    if document.family != stack.family.name:
        mismatch = f"settings of {document.family}, and stack {stack.name} is {stack.family.name}"
        raise PlumbError(mismatch, str(file), "MPI libraries have no settings in common")
    _refuse_untried(document.tuned, stack.family.knobs, str(file))
    was, same = document.fingerprint, document.fingerprint.library == fingerprint(stack, 1, "core").library
    library = "with this MPI library" if same else f"with another build of the MPI library ({was.library[:12]})"
    return document.tuned, f"{file}: proven on {was.cpu}, {was.ranks} ranks of {was.placement}, {library}"


def _refuse_untried(brought: Configuration, knobs: Iterable[Knob], where: str) -> None:
    known = {name for knob in knobs for name in (knob.name, *knob.at_least, *(need.name for need in knob.needs))}
    settings = [(setting.name, setting.value, known) for setting in brought.settings]
    settings += [(rule.collective, rule.algorithm, {*OPERATIONS, BARRIER}) for rule in brought.rules]
    for name, value, names in settings:
        if name not in names or not _PLAIN.fullmatch(value):
            cure = f"take it out of the file; to try it yourself: plumb gate --candidate setting:{name}=…"
            raise PlumbError(f"not a setting that plumb tune tries: {name}={value}", where, cure)


def fingerprint_of(bench: TuningBench) -> Fingerprint:
    """The fingerprint of ``bench``: that of its first placement, with all ranks that it has room for."""
    placement = bench.request.placements[0]
    ranks = len(binder.resolve(placement, threads=1).ranks)
    return fingerprint(manifests.load(bench.request.stack), ranks, placement, bench.request.nodes)


def emit(
    stack: Manifest, configuration: Configuration, fingerprint: Fingerprint, session: str, directory: Path | None = None
) -> Path:
    """Write the native files of ``configuration`` and the tuned version of ``stack``; the folder of both.

    It is ``NAME+tuned`` (``NAME+tuned-2n`` for two nodes) in ``directory``, the folder of all stacks by default; an
    earlier one is replaced once the new one is whole. Raises :class:`PlumbError` for a stack that is tuned already, a
    configuration that sets nothing, a foreign folder, or a failed write.
    """
    name = stack.name
    if stack.settings:
        raise PlumbError(f"stack {name} has settings already", "its manifest", "tune the stack that it was made from")
    if configuration == Configuration():
        raise PlumbError("the library's default is not a configuration to write", name, "there is nothing to do")
    folder = (directory or paths.stacks()) / (name + suffix(fingerprint.nodes))
    files.refuse_foreign(folder)
    fresh = folder.with_name(f".{folder.name}.new")
    with files.writing(f"stack {folder.name}", folder), locked(folder.name):
        try:
            files.make_anew(fresh)
            # a setting that names a file of ``fresh`` names it in ``folder``
            settings = tuple(
                Setting(item.name, str(folder / Path(item.value).name)) if Path(item.value).parent == fresh else item
                for item in stack.family.settings_of(configuration, fresh)
            )
            native = (file for file in fresh.iterdir() if file.name != files.MARK)
            read = {str(folder / file.name): files.sha256(file) for file in native}
            for file, text in stack.family.native_files(settings).items():
                (fresh / file).write_text(text, encoding="utf-8")
            tuned = Tuned(name, store.now(), session, fingerprint, configuration)
            manifests.save(make(stack, {item.name: item.value for item in settings}, tuned, read), fresh)
            with files.replaced(folder, fresh):
                pass
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    return folder


def write_down(bench: TuningBench, winner: Confirmed, say: Say) -> None:
    """The settings that were proven, and the tuned stack that has them."""
    for name, value in bench.settings(winner.configuration).items():
        say(f"  {name} = {value}")
    stack = manifests.load(bench.request.stack)
    if stack.settings:
        say(f"no tuned stack is written: {bench.request.stack} has settings of its own, change those")
        return
    folder = emit(stack, winner.configuration, fingerprint_of(bench), winner.sessions[0])
    say(f"stack {folder.name}: {folder}")
    request = write.SiteRequest(name=bench.request.site, partition=bench.request.partition, add_stacks=[folder.name])
    if write.offer_stacks(request):
        say(f"site {bench.request.site}, partition {bench.request.partition}: offers {folder.name}")
