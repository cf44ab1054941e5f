"""``plumb COMMAND --help`` has an example that works, and shells complete commands, options and names."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import record

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.commands.table import COMMANDS, QUESTIONS

#: the commands whose examples measure nothing, install nothing and need no more than two records
DRY = ("list", "show", "diff", "topology", "lint", "history", "report", "compact", "ci")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two records, an empty current folder."""
    folder = tmp_path / "results/local"
    folder.mkdir(parents=True)
    for number, ident in enumerate(("4f89ff3fc235", "2cb1455e5579")):
        made = record(id=ident, session=f"2026010{number}T000000Z-node1-abcdef", campaign="one")
        (folder / f"s{number}.jsonl").write_text(json.dumps(made) + "\n")
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)


def words(command):
    """The words of its example after ``plumb``."""
    found = shlex.split(COMMANDS[command].example)
    assert found[0] == "plumb"
    return found[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_the_example(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.endswith(f"\nexample:\n  {COMMANDS[command].example}\n")


def test_the_first_screen_answers_a_dozen_questions_and_names_the_rest(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    examples = [line for line in lines if line.startswith("    plumb ")]
    assert examples == [f"    {COMMANDS[name].example}" for name in QUESTIONS.values()]
    assert len(QUESTIONS) <= 12
    assert len(lines) <= 34
    assert "plumb help --all" in lines[-1]


def test_the_first_page_has_the_questions_of_the_first_screen():
    page = (paths.root() / "docs/index.md").read_text()
    assert dict(re.findall(r"^\| (.+\?) \| `plumb (\w+)` \|", page, re.MULTILINE)) == QUESTIONS


@pytest.mark.parametrize("words", [["stack", "show"], ["gate"], []])
def test_help_is_a_command_too(words, capsys):
    texts = []
    for line in (["help", *words], [*words, "--help"]):
        with pytest.raises(SystemExit):
            cli.main(line)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "completion"])
def test_the_example_has_only_options_that_there_are(command):
    given = words(command)
    assert given[0] == command
    cli._parser(given).parse_args(given)


@pytest.mark.parametrize("command", DRY)
def test_the_example_runs(command, results, capsys):
    assert cli.main(words(command)) == 0
    out, err = capsys.readouterr()
    assert out
    assert not err


def shell(name, script):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [name, *flags, "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60,
        check=True,
    ).stdout  # fmt: skip


def in_bash(line):
    """What bash offers after ``line``."""
    script = f"""
        eval "$(plumb completion bash)"
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_TYPE=9 COMP_WORDBREAKS=$' \\t\\n'
        _python_argcomplete plumb
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return shell("bash", script).split()


def test_commands_options_and_names_are_completed(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/manifest.json").write_text("{}")
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))
    assert in_bash("plumb sh") == ["show"]
    assert in_bash("plumb compare --all") == ["--all-figures"]
    assert in_bash("plumb list --res") == ["--results"]
    assert in_bash("plumb tune m") == in_bash("plumb gate --stack m") == in_bash("plumb stack show m") == ["mine"]


@pytest.mark.parametrize(("name", "script"), [
    ("zsh", 'autoload -U compinit; compinit -D; eval "$(plumb completion zsh)"; print $_comps[plumb]'),
    ("fish", "plumb completion fish | source; complete --do-complete 'plumb sho'"),
])  # fmt: skip
def test_other_shells_know_what_completes_it(name, script):
    assert shell(name, script).startswith({"zsh": "_python_argcomplete", "fish": "show"}[name])
