"""Commands in the documentation print what stands there.

A block between ``<!-- output: COMMAND -->`` and ``<!-- end -->`` holds the command's output; PLUMB_GOLDEN=write
writes it again.
Fenced ``sh`` blocks are run elsewhere: by the campaign test, or they are the set-up itself.
"""

import ast
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import yaml
from samples import record

from plumbline import __version__, extras
from plumbline.base import paths
from plumbline.commands import cli
from plumbline.commands.table import COMMANDS

ROOT = paths.root()
BLOCK = re.compile(r"<!-- output: (?P<command>.+?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


#: what a check took, and the age of its result, which depend on the machine
TAKEN = re.compile(r"\d+\.\d (of \d+ s), \d+ s ago")


def output(command, capture):
    """What ``command`` prints, on either stream, with the tools of this checkout; without the time that it took."""
    program, *words = shlex.split(command)
    if program != "plumb":
        command = [paths.tools() / "bin" / program, *words]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        return answer.stdout + answer.stderr
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setenv("COLUMNS", "100")
        patch.chdir(ROOT)
        capture.readouterr()
        cli.main(words)
    return TAKEN.sub(r"0.0 \1, 0 s ago", "".join(capture.readouterr()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_outputs_are_real(page, capfd):
    def fresh(found):
        command = found["command"]
        return f"<!-- output: {command} -->\n```\n$ {command}\n{output(command, capfd)}```\n<!-- end -->"

    text = page.read_text(encoding="utf-8")
    expected = BLOCK.sub(fresh, text)
    if os.environ.get("PLUMB_GOLDEN") == "write":
        page.write_text(expected, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_tests_that_pages_name_are_there():
    names = {name for page in PAGES for name in re.findall(r"`(tests/[\w/]+\.py)`", page.read_text())}
    assert [name for name in sorted(names) if "NAME" not in name and not (ROOT / name).exists()] == []


def test_every_plumb_command_in_the_docs_exists():
    for page in PAGES:
        for name in re.findall(r"(?:^|`)plumb ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert name in {*COMMANDS, "help"}, f"{page.name}: plumb {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_list_or_table_begins_after_a_blank_line(page):
    """The site would make it part of the paragraph above it."""
    before, fenced = "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        found = None if fenced else re.match(r"(- |\d+\. |\|)", line)
        if found:
            assert before[:1] in ("", " ", "-", "|", "#", "<") or before[0].isdigit(), f"{page.name}: {line}"
        before = line


def test_the_example_of_python_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    (tmp_path / "local").mkdir()
    (tmp_path / "local/s.jsonl").write_text(json.dumps(record()) + "\n")
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/api.md").read_text(), re.DOTALL)
    exec(code, {})  # noqa: S102
    assert capsys.readouterr().out == "openmpi 10.10 GB/s\n"


def test_the_layers_on_the_page_are_those_that_are_checked():
    checked = re.search(r"^layers = (\[.*?^\])", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    picture = re.search(r"```text\n(.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)
    assert [line.partition("   ")[0] for line in picture[1].splitlines()] == ast.literal_eval(checked[1])


def test_the_page_has_the_extras_and_the_points_where_they_add():
    page = (ROOT / "docs/architecture.md").read_text().partition("## Core and extras")[2].partition("\n## ")[0]
    cells = " ".join(re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE))
    named = {*re.findall("[a-z.]+", cells)}
    folders = {file.parent.name for file in (ROOT / "plumbline/extras").glob("*/__init__.py")}
    assert named == {*folders, *extras.ADDITIONS}


def test_the_changes_begin_with_this_version():
    first = re.search(r"^## (\S+), ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first[1] == __version__


@pytest.mark.parametrize(
    ("file", "schema"), [("CITATION.cff", "citation-file-format"), (".gitlab-ci.yml", "gitlab-ci")]
)
def test_files_that_others_read_are_valid(file, schema):
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    extra = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    answer = subprocess.run([*check, *extra, ROOT / file], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout


def test_hooks_before_a_commit_are_programs_of_the_checkout():
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    locked = (ROOT / "requirements-dev.txt").read_text()
    for hook in local["hooks"]:
        program = hook["entry"].split()[0].removeprefix(".venv/bin/")
        assert re.search(rf"^{program}(-py)?==", locked, re.MULTILINE), hook["id"]
