"""The terminal: its width, colours, pager and bar of progress, and protection from control characters in text.

Colours: a terminal gets them unless ``NO_COLOR`` is set or ``TERM`` is ``dumb``; ``FORCE_COLOR`` gives them
to a file too.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, TextIO

from plumbline.base import programs, surroundings

#: a class of a regular expression: control characters, line ends, and marks that turn the direction of writing
CONTROLS = r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]"
#: characters that XML 1.0 excludes
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BOLD, _FAINT, _RED, _GREEN, _YELLOW = 1, 2, 31, 32, 33
#: characters of the bar of progress
_BAR_LENGTH = 24
#: patterns and their colours; each group of a pattern gets its own colour
_STYLES = (
    (re.compile(r"^(.*\S.*)\n(-+(?:  +-+)*)$", re.MULTILINE), (_BOLD, _FAINT)),
    (re.compile(r"\b(PASS|GAIN)\b|(?<=[0-9] )(OK)\b"), (_GREEN, _GREEN)),
    (re.compile(r"\b(FAIL|INVALID)\b|(?<=  )(NO)(?=  )"), (_RED, _RED)),
    (re.compile(r"\b(INCONCLUSIVE)\b"), (_YELLOW,)),
    (re.compile(r"^(plumb(?=:)|failed(?= )|!!(?= ))", re.MULTILINE), (_RED,)),
    (re.compile(r"^(next):", re.MULTILINE), (_BOLD,)),
)


def steers(text: str) -> bool:
    """Whether ``text`` is more than a line that can be shown: it has a control character or a line end."""
    return bool(re.search(CONTROLS, text))


def _visible(text: str) -> str:
    """``text``, its control characters but line ends and tabs as JSON writes them."""
    return re.sub(rf"(?![\n\t]){CONTROLS}", lambda sign: f"\\u{ord(sign[0]):04x}", text)


def on_a_line(text: str, instead: str = " ") -> str:
    """``text`` with ``instead`` of each character that cannot be printed, line ends among them."""
    return "".join(sign if sign.isprintable() else instead for sign in text)


class _Bar:
    """A line below all that is written to the terminal. It has no thread, which could disturb a launch."""

    def __init__(self) -> None:
        self._text = ""
        self._drawn = False

    def show(self, text: str) -> None:
        """Show ``text``; nothing if it is empty."""
        self.hide()
        self._text = text
        self.draw()

    def hide(self) -> None:
        """Make room for other text."""
        if self._drawn:
            self._write("\r\x1b[K")
        self._drawn = False

    def draw(self) -> None:
        """Show it again, below."""
        if self._text and not self._drawn:
            self._write(self._text)
            self._drawn = True

    def _write(self, text: str) -> None:
        stream = sys.stdout.stream if isinstance(sys.stdout, Screen) else sys.stdout
        stream.write(text)
        stream.flush()


_bar = _Bar()


@contextlib.contextmanager
def bar() -> Iterator[None]:
    """While the block runs, :func:`progress` shows a bar on the terminal."""
    try:
        yield
    finally:
        _bar.show("")


def say(line: str) -> None:
    """Print a line at once, whoever reads it."""
    print(line, flush=True)


def progress(done: int, total: int, text: str) -> None:
    """Move the bar. A file or a pipe gets nothing: what a command prints says how far it is."""
    room = width()
    if room is not None:
        full = round(_BAR_LENGTH * done / total)
        line = f"[{'#' * full}{'.' * (_BAR_LENGTH - full)}] {done}/{total}  {text}"
        _bar.show(_visible(line)[: room - 1])


#: how a stream that lacks a character shows it; ``?`` has a meaning of its own in tables
_PLAIN = str.maketrans(
    {"–": "-", "…": "...", "µ": "u", "×": "x", "≥": ">=", "≤": "<=", "±": "+-", "→": "->", "²": "^2", "·": "*"}
)
#: the name under which :func:`str.encode` knows that
PLAIN = "plumbline-plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """The replacement of characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return error.object[error.start : error.end].translate(_PLAIN).encode("ascii", "replace").decode(), error.end


codecs.register_error(PLAIN, _plain)


class Screen:
    """A stream of text that cannot steer a terminal: control characters of records and programs are only shown."""

    def __init__(self, stream: TextIO, coloured: bool) -> None:
        self.stream = stream
        self._coloured = coloured

    def write(self, text: str) -> int:
        """Write ``text``, its control characters as JSON writes them, with colours if it is for people."""
        shown = _shown(text, self._coloured, width() if self.stream.isatty() else None)
        _bar.hide()
        count = self.stream.write(shown)
        if shown.endswith("\n"):
            _bar.draw()
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _shown(text: str, with_colours: bool, room: int | None) -> str:
    text = _visible(text)
    if text.startswith(("{", "[")):  # JSON is for programs
        return text
    text = "\n".join(_wrapped(line, room) for line in text.split("\n"))
    for pattern, colours in _STYLES if with_colours else ():
        text = pattern.sub(lambda match, colours=colours: _painted(match, colours), text)  # type: ignore[misc]
    return text


def _wrapped(line: str, room: int | None) -> str:
    """A long sentence in lines of whole words; columns, and a command at its end, which may be copied, stay whole."""
    if room is None or len(line) <= room or line.startswith(" ") or "  " in line:
        return line
    return textwrap.fill(
        re.sub(r"(?<=: )plumb .*", lambda command: command[0].replace(" ", "\xa0"), line),
        room,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\xa0", " ")


def _painted(match: re.Match[str], colours: tuple[int, ...]) -> str:
    text, begin = match.group(), match.start()
    for number in reversed(range(1, len(colours) + 1)):
        if match[number] is not None:
            low, high = match.start(number) - begin, match.end(number) - begin
            text = f"{text[:low]}\x1b[{colours[number - 1]}m{text[low:high]}\x1b[0m{text[high:]}"
    return text


def coloured(stream: TextIO) -> bool:
    """Whether text on ``stream`` gets colours."""
    is_able = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return not os.environ.get("NO_COLOR") and (is_able or bool(os.environ.get("FORCE_COLOR")))


def width() -> int | None:
    """Columns of the terminal that standard output is; None if it is not a terminal, or reports none."""
    return shutil.get_terminal_size((0, 0)).columns or None if sys.stdout.isatty() else None


def page(text: str) -> None:
    """Print ``text``, on a terminal by ``PAGER`` (default: ``less``, which ends at once if one screen is enough)."""
    pager = os.environ.get("PAGER", "less")
    words = pager.split()
    if not words or not sys.stdout.isatty() or shutil.which(words[0]) is None:
        print(text)
        return
    sys.stdout.flush()
    environment = {"LESS": "FRX", **surroundings.of_user()}
    with (
        subprocess.Popen(["sh", "-c", pager], stdin=subprocess.PIPE, encoding="utf-8", env=environment) as child,
        programs.handling([signal.SIGINT], signal.SIG_IGN),  # an interrupt is for the pager
    ):
        child.communicate(_shown(f"{text}\n", coloured(sys.stdout), width()))
