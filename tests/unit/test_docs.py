"""Commands in the documentation print what stands there.

A block between ``<!-- output: COMMAND -->`` and ``<!-- end -->`` holds the command's output; PLUMB_GOLDEN=write
writes it again.
Fenced ``sh`` blocks are run elsewhere: by the campaign test, or they are the set-up itself.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline import paths

ROOT = paths.root()
BLOCK = re.compile(r"<!-- output: (?P<command>.+?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def output(command):
    """What ``command`` prints, on either stream, with the tools of this checkout."""
    path = f"{Path(sys.executable).parent}:{paths.tools() / 'bin'}:{os.environ['PATH']}"
    answer = subprocess.run(
        shlex.split(command),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
    )
    return answer.stdout + answer.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_outputs_are_real(page):
    def fresh(found):
        command = found["command"]
        return f"<!-- output: {command} -->\n```\n$ {command}\n{output(command)}```\n<!-- end -->"

    text = page.read_text(encoding="utf-8")
    expected = BLOCK.sub(fresh, text)
    if os.environ.get("PLUMB_GOLDEN") == "write":
        page.write_text(expected, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_plumb_command_in_the_docs_exists():
    known = output("plumb --help")
    for page in PAGES:
        for name in re.findall(r"(?:^|`)plumb ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert re.search(rf"^    {name}\b", known, re.MULTILINE), f"{page.name}: plumb {name}"
