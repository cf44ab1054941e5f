"""The settings that an MPI library reports: asked by MPI_T, in a program of the stack that needs no launcher."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plumbline.base.errors import PlumbError
from plumbline.launch.environment import at_home, inherit
from plumbline.mpi.settings import Knob
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

PROGRAM = "list_settings"
TIME_LIMIT_S = 60


class ReportedSetting(Struct, frozen=True):
    """A setting as MPI_T reports it, with the value that it had; ``words`` are the library's for its numbers.

    ``running``: the library says that it may be changed while it runs.
    """

    name: str
    type: str
    value: str
    running: bool
    about: str
    words: dict[str, str] = {}


class _Document(Struct, frozen=True):
    library: str
    settings: list[ReportedSetting]


class Known(Struct, frozen=True):
    """A setting under its own name, with its value by default and in the stack.

    ``allowed`` are the values that the library names: words, numbers with their words, or a range; empty where it
    names none. A number that stands for a word is shown as the word; ``words`` are in the order of their numbers.
    """

    name: str
    type: str
    default: str
    now: str
    running: bool
    allowed: str
    about: str
    words: tuple[str, ...] = ()

    def number(self, value: str) -> str | None:
        """The number that MPI_T has for ``value``, a number or a word; None for a word that the library lacks."""
        if value.isdigit():
            return value
        return str(self.words.index(value)) if value in self.words else None


class Inventory(Struct, frozen=True):
    """All settings of a stack's MPI library, by name, and the curated ones that it has and lacks."""

    library: str
    settings: dict[str, Known]
    knobs: tuple[Knob, ...]
    lacking: tuple[str, ...]


def of(stack: Manifest) -> Inventory:
    """The settings of ``stack``; its own ``settings`` are in force for ``now``.

    Raises :class:`PlumbError` if its library cannot be asked.
    """
    family = stack.family
    default = _ask(replace(stack, settings={}, tuned=None))
    now = {setting.name: setting for setting in _ask(stack).settings} if stack.settings else {}
    settings = {}
    for setting in default.settings:
        name = family.setting_name(setting.name, setting.about)
        value = now.get(setting.name, setting).value
        if not value:  # Intel MPI does not report values that are texts
            value = stack.settings.get(name, "")
        words = family.words(setting.about) if setting.type == "int" else []
        numbered = ", ".join(f"{number} {word}" for number, word in setting.words.items())
        allowed = ", ".join(words) or numbered or family.range_of(setting.about)
        default_shown, now_shown = (_worded(words, text) for text in (setting.value, value))
        settings[name] = Known(
            name, setting.type, default_shown, now_shown, setting.running, allowed, setting.about, tuple(words)
        )
    curated = tuple(knob for knob in family.knobs if knob.name in settings)
    lacking = tuple(knob.name for knob in family.knobs if knob.name not in settings)
    library = " ".join(default.library.splitlines()[0].partition(",")[0].split())
    return Inventory(library, settings, curated, lacking)


def _worded(words: list[str], text: str) -> str:
    return words[int(text)] if text.isdigit() and int(text) < len(words) else text


def _ask(stack: Manifest) -> _Document:
    program = _program(stack)
    variables = {**inherit(os.environ).kept, **manifests.environment(stack, os.environ)}
    cure = "plumb stack check"
    try:
        with tempfile.TemporaryDirectory() as home:
            env = at_home(variables, Path(home))
            done = subprocess.run([program], env=env, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlumbError(f"the MPI library cannot be asked for its settings: {error}", str(program), cure) from None
    if done.returncode != 0:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise PlumbError(f"{PROGRAM} ended with {done.returncode}: {last}", str(program), cure)
    try:
        return msgspec.json.decode(done.stdout, type=_Document)
    except (msgspec.MsgspecError, ValueError) as error:
        raise PlumbError(f"{PROGRAM} printed no list of settings: {error}", str(program), "report this") from None


def _program(stack: Manifest) -> Path:
    """The program beside the kernels of the library's own ABI, which a tuned stack shares with its original."""
    entries = stack.benchmarks.items()
    folders = {Path(entry.file).parent for name, entry in entries if entry.suite == "kernels" and "-abi" not in name}
    for folder in folders:
        if (program := folder.parent / "libexec" / PROGRAM).is_file():
            return program
    cure = f"plumb stack install {stack.made_of}"
    raise PlumbError(f"stack {stack.name} has no program {PROGRAM}", "its kernels", cure)
