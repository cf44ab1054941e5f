"""What people see on a terminal: colours, tables that fit, a pager; and nothing of that in a pipe or a file."""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.base import paths, terminal
from plumbline.base.table import table

HEADER = ("id", "test", "count", "note")
ROWS = [("0123456789ab", "osu_pair latency", "12", "nothing, but it is said at some length"), ("f" * 12, "x", "3", "")]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch):
    """A terminal of that many columns in place of standard output."""

    def make(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        return stream

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return make


@pytest.mark.parametrize("columns", [100, 60, 50])
def test_a_table_fits_and_loses_no_word(screen, columns):
    screen(columns)
    shown = table(HEADER, ROWS, right=("count",))
    assert max(map(len, shown.splitlines())) <= columns
    assert set(shown.split()) >= {word for row in ROWS for cell in row for word in cell.split()}


def test_what_a_narrow_table_leaves_out_is_named(screen):
    screen(30)
    shown = table(HEADER, ROWS, right=("count",), spare=("note", "count", "test"))
    assert max(map(len, shown.splitlines()[:-1])) <= 30
    assert shown.splitlines()[-1] == "left out, the terminal is too narrow: note"
    assert "latency" in shown


@pytest.mark.parametrize("ruled", [True, False])
@pytest.mark.parametrize("columns", [80, 50])
def test_a_table_of_many_columns_is_folded_below_its_first(screen, columns, ruled):
    screen(columns)
    header = ("figure", *(f"side-{number}" for number in range(9)), "best")
    rows = [(name, *(f"{name}{number} [1.18 1.27]" for number in range(9)), "z" * 120) for name in ("a", "b")]
    lines = table(header, rows, right=header[1:-1], ruled=ruled).splitlines()
    assert max(map(len, lines)) <= columns
    assert set(header) <= {word for line in lines for word in line.split()}
    assert sorted(word for line in lines for word in line.split() if re.fullmatch("[ab][0-9]", word)) == [
        f"{name}{number}" for name in "ab" for number in range(9)
    ]
    assert sum(line.count("z") for line in lines) == 240
    assert [line.split()[:1] for line in lines].count(["figure"]) == lines.count("") + 1


def test_every_table_is_fitted():
    """What draws tables is in one module, which knows the width of the terminal."""
    users = [file for file in paths.package().rglob("*.py") if "tabulate(" in file.read_text(encoding="utf-8")]
    assert users == [paths.package() / "base" / "table.py"]


def test_a_pipe_gets_the_whole_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    shown = table(HEADER, ROWS, spare=("note",))
    assert "nothing, but it is said at some length" in shown
    assert "left out" not in shown


def painted(text):
    stream = Terminal()
    terminal.Screen(stream, terminal.coloured(stream)).write(text)
    return stream.getvalue()


def test_verdicts_and_headings_have_colours(screen):
    screen(80)
    assert painted("gate: FAIL: 1 PASS") == "gate: \x1b[31mFAIL\x1b[0m: 1 \x1b[32mPASS\x1b[0m"
    assert painted("a    b\n---  -\n1    2") == "\x1b[1ma    b\x1b[0m\n\x1b[2m---  -\x1b[0m\n1    2"
    assert painted("FAILED, PASSING") == "FAILED, PASSING"
    assert painted("plumb: no\nplumb show\n") == "\x1b[31mplumb\x1b[0m: no\nplumb show\n"


@pytest.mark.parametrize(("text", "expected"), [
    ("A slow wave looks like a step: --confirm measures", "A slow wave looks like a step:\n--confirm measures"),
    ("next: plumb gate --resume a-folder --minutes 10", "next:\nplumb gate --resume a-folder --minutes 10"),
    ("figure  value     unit  what it may be compared with", None),
    ('{"text": "a document for programs is not folded"}', None),
])  # fmt: skip
def test_a_sentence_breaks_between_words_and_what_may_be_copied_does_not(screen, monkeypatch, text, expected):
    stream = screen(34)
    monkeypatch.setattr(sys, "stdout", terminal.Screen(stream, False))
    print(text)
    assert stream.getvalue() == f"{expected or text}\n"


@pytest.mark.parametrize("text", ['{"verdict": "FAIL"}\n', '[{"verdict": "FAIL"}]\n', "no verdict\n"])
def test_json_has_no_colours(screen, text):
    screen(80)
    assert painted(text) == text


@pytest.mark.parametrize(("variables", "terminal_there", "expected"), [
    ({}, True, True),
    ({}, False, False),
    ({"NO_COLOR": "1"}, True, False),
    ({"NO_COLOR": ""}, True, True),
    ({"FORCE_COLOR": "1"}, False, True),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ({"TERM": "dumb"}, True, False),
])  # fmt: skip
def test_who_gets_colours(screen, monkeypatch, variables, terminal_there, expected):
    screen(80)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert terminal.coloured(Terminal() if terminal_there else io.StringIO()) is expected


def test_no_text_brings_a_control_character_of_its_own(screen):
    screen(80)
    assert painted("\x1b[31mFAIL\x1b[0m\r\x07") == "\\u001b[31mFAIL\\u001b[0m\\u000d\\u0007"


def on_terminal(script, **variables):
    """What a program of Python writes to a terminal of its own, 80 columns wide."""
    leader, follower = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "LESS")}
    environment = {**kept, "COLUMNS": "80", "TERM": "xterm", **variables}
    program = subprocess.Popen(
        [sys.executable, "-c", script], stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    said = b""
    while chunk := _read(leader):
        said += chunk
    os.close(leader)
    assert program.wait(timeout=60) == 0, said
    return said.decode().replace("\r\n", "\n")


def _read(leader):
    try:
        return os.read(leader, 4096)
    except OSError:  # Linux: the last program has closed it
        return b""


@pytest.mark.parametrize(
    ("pager", "expected"), [("sed s/^/paged:/", "paged:a\npaged:b\n"), ("", "a\nb\n"), ("no-such-pager", "a\nb\n")]
)
def test_a_page_goes_to_the_pager(pager, expected):
    script = "from plumbline.base import terminal; terminal.page('a\\nb')"
    assert on_terminal(script, PAGER=pager) == expected


def test_less_ends_at_once_if_one_screen_is_enough():
    if shutil.which("less") is None:
        pytest.skip("less is not installed")
    script = "from plumbline.base import terminal; terminal.page('the verdict is PASS')"
    said = on_terminal(script, PAGER="less", LINES="24")
    assert "the verdict is \x1b[32mPASS\x1b[0m" in said


def test_a_pager_that_ends_early_is_no_error():
    script = "from plumbline.base import terminal; terminal.page('line\\n' * 100000)"
    assert on_terminal(script, PAGER="head -n 1") == "line\n"


def test_a_pipe_has_no_pager(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PAGER", f"touch {tmp_path / 'paged'}")
    terminal.page("a")
    assert capsys.readouterr().out == "a\n"
    assert not list(Path(tmp_path).iterdir())


SHOWN = re.compile(r"\r\x1b\[K")


def test_a_bar_stays_below_what_is_printed_and_goes_in_the_end():
    script = (
        "import sys; from plumbline.base import terminal; sys.stdout = terminal.Screen(sys.stdout, False)\n"
        "with terminal.bar():\n"
        "    terminal.progress(1, 4, 'one \\x1b')\n"
        "    print('a line')\n"
        "    print('no end', end=''); print(', an end')\n"
        "    terminal.progress(2, 4, 'x' * 200)\n"
        "print('last')"
    )
    half, quarter = "#" * 12 + "." * 12, "#" * 6 + "." * 18
    first, second = f"[{quarter}] 1/4  one \\u001b", f"[{half}] 2/4  {'x' * 200}"[:79]
    assert SHOWN.split(on_terminal(script)) == [first, f"a line\n{first}", f"no end, an end\n{first}", second, "last\n"]


def test_a_pipe_has_no_bar(capsys):
    with terminal.bar():
        terminal.progress(1, 4, "one")
    assert capsys.readouterr() == ("", "")
