"""The gate of two commands: no site, no stack, no plumb.yaml, and no figure for anybody else."""

import contextlib
import json
import shlex
import shutil

import pytest
from witness_helper import compile_c

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.gate import commands, sides
from plumbline.launch import hosts, process
from plumbline.launch.witness import disturbance, processes
from plumbline.records import store

#: prints a rate around the first argument, another one each time; the counter is a file
PROGRAM = """#!/bin/sh
n=$(cat "$0.count" 2>/dev/null || echo 0)
echo $((n + 1)) > "$0.count"
echo "rate: $1.$((n * 37 % 89 + 10)) MB/s"
"""
FIGURE = ("--figure", "rate: (\\S+)", "--unit", "MB/s", "--better", "higher")


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """``gate(old, new, …)`` in a folder with the programs; returns status, the document and what was shown."""
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "no-sites"))
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    quiet = {"disturbed": False, "causes": [], "figures": {}, "beside": []}
    monkeypatch.setattr(disturbance, "assess", lambda *_, **__: quiet)  # other tests run beside this one
    monkeypatch.setattr(hosts, "turn", lambda: contextlib.nullcontext([]))
    monkeypatch.chdir(tmp_path)
    for name in ("old", "new"):
        (tmp_path / name).write_text(PROGRAM)
        (tmp_path / name).chmod(0o755)

    def call(*words):
        status = cli.main(["gate", "--json", *words])
        out, err = capsys.readouterr()
        return status, json.loads(out) if out else {}, err

    return call


def both(old, new):
    return "--baseline", f"command:{old}", "--candidate", f"command:{new}", "--work", "work"


def test_two_commands_get_a_verdict_that_can_be_repeated_and_is_no_history(gate, tmp_path):
    status, document, shown = gate(*both("./old 200", "./new 180"), *FIGURE, "--seed", "3", "--output", "g.html")
    (series,) = document["series"]
    assert (status, series["verdict"], series["series"]) == (1, "FAIL", "new: figure")
    assert series["ratio"] == pytest.approx(0.9, abs=0.01)
    assert "notes" not in series  # a shell script carries the witness
    facts = {fact["name"]: fact["text"] for fact in document["facts"]}
    assert facts["candidate"] == "./new 180"
    assert "site" not in facts
    words = shlex.split(facts["repeat"])
    assert [words[words.index(name) + 1] for name in FIGURE[::2]] == list(FIGURE[1::2])
    assert "./new 180 against ./old 200" in shown
    assert not (tmp_path / "results").exists()
    records = [(item.side, item.experiment, item.figures) for item in store.whole(tmp_path / "work/records.jsonl", "")]
    assert records == [("baseline", "gate", []), ("candidate", "gate", [])]
    assert gate("work/records.jsonl")[1]["series"] == document["series"]


def test_the_time_is_the_figure_where_none_is_named(gate):
    status, document, _ = gate(
        *both("./old 1", "./new 1"), "--tolerance", "900%", "--must-detect", "950%", "--minutes", "9"
    )
    assert (status, document["series"][0]["series"]) == (0, "new: time")


def test_without_a_witness_there_is_no_proof_of_placement_and_the_verdict_says_so(
    gate, tmp_path, monkeypatch, output_of
):
    monkeypatch.setattr(processes, "read", lambda folder: ([], []))
    _, document, _ = gate(*both("./old 200", "./new 180"), *FIGURE, "--output", "g.html", "--output", "g.md")
    note = f"without proof of placement: {commands.NO_WITNESS}"
    assert document["series"][0]["notes"] == [note]
    assert all("without proof of placement" in (tmp_path / name).read_text() for name in ("g.html", "g.md"))
    assert cli.main(["gate", "work/records.jsonl"]) == 1
    shutil.rmtree("work")
    assert output_of(0, "gate", *both("./old 200", "./new 199"), *FIGURE).splitlines()[-1].endswith(f"; {note}")


def test_a_command_that_fails_is_invalid_with_its_status_and_last_words(gate):
    status, document, _ = gate(*both("./old 1", "sh -c 'echo first >&2; echo oops >&2; exit 3'"))
    assert (status, document["series"][0]["verdict"]) == (3, "INVALID")
    assert "sh -c 'echo first >&2; echo oops >&2; exit 3': exit status 3: oops" in document["series"][0]["reason"]


def test_it_goes_on_and_a_program_that_was_built_anew_does_not(gate, tmp_path):
    status, _, shown = gate(*both("./old 200", "./new 180"), *FIGURE, "--minutes", "0.0001")
    assert status == 3
    assert "goes on" in shown
    assert f"to go on: plumb gate --resume {tmp_path / 'work'}\n\ngate: INVALID" in shown
    assert "a folder is no session file (work): plumb gate --resume work continues" in gate("work")[2]
    assert gate("--resume", "work")[0] == 1
    (tmp_path / "new").write_text(PROGRAM + "\n")
    assert "the benchmark of new on command is another one now" in gate("--resume", "work")[2]


@pytest.mark.parametrize(("words", "fault"), [
    (both("./old", "./gone"), "there is no program ./gone"),
    (both("./old", "'./new"), "No closing quotation"),
    (both("./old | grep x", "./new"), "no shell reads '|', it would be an argument"),
    (both("./old", "./new 2>&1"), "write command:\"sh -c './new 2>&1'\", or quote it"),
    (both("./old", "./new 10; ./old"), "no shell reads ';'"),
    (both("./old", "./new $HOME/x"), "no shell reads '$HOME'"),
    (both('./old "${HOME}"', "./new"), "no shell reads '${HOME}'"),
    (both("./old `date`", "./new"), "no shell reads '`'"),
    (("--baseline", "./old", "--candidate", "command:./new"), "'./old' is no command"),
    (("--baseline", "./old", "--candidate", "./new"), "command:./old compares programs"),
    (("--baseline", "./old -n 1", "--candidate", "./new"), "command:'./old -n 1' compares programs"),
    (both("", "./new"), "'command:' is no command"),
    (("--baseline", "mpich", "--candidate", "command:./new"), "'mpich' is no command"),
    ((*both("./old", "./new"), "--stack", "mpich"), "--stack means nothing for two commands"),
    ((*both("./old", "./new"), *FIGURE[:2]), "--figure without a direction"),
    ((*both("./old", "./new"), "--figure", "rate", "--better", "lower"), "it has no group"),
    ((*both("./old", "./new"), "--unit", "s"), "--unit goes with --figure"),
])  # fmt: skip
def test_what_cannot_be_measured_is_one_line(gate, words, fault):
    status, document, shown = gate(*words)
    assert (status, document) == (3, {})
    assert fault in shown


@pytest.mark.parametrize(
    "quoted", ["sh -c 'a | b > c'", """sh -c "for i in $(seq 3); do \\"$i\\"; done" '$A'""", "awk '$1 > 2' \\| \"|\""]
)
def test_what_is_quoted_is_the_programs_own(quoted):
    assert not any(match[1] for match in commands._OF_SHELL.finditer(quoted))


def test_a_number_that_is_not_there_is_named_once(gate):
    _, document, _ = gate(*both("./old 1", "./new 1"), "--figure", "speed: (\\S+)", "--better", "higher")
    assert document["series"][0]["reason"].startswith("the baseline failed: ./old 1: figure: ")


def test_a_place_that_cannot_be_written_names_the_option(gate, tmp_path):
    (tmp_path / "work").write_text("")
    assert "--work FOLDER names a place" in gate(*both("./old 1", "./new 1"))[2]


def test_commas_and_equals_signs_are_the_commands_own():
    spelled = "command:./new --list 1,2 --x=a,threads=3,placement:core,variable:A=b"
    assert sides.parsed(spelled, "") == {
        "command": ["./new --list 1,2 --x=a,threads=3"],
        "placement": ["core"],
        "variable": ["A=b"],
    }
    with pytest.raises(PlumbError, match="two values of placement"):
        sides.parsed("command:./new,placement:core,placement:numa", "")


def test_a_placement_is_proven(gate):
    _, document, _ = gate(*both("./old 200,placement:core", "./new 180,placement:core"), *FIGURE)
    (baseline, candidate) = store.whole(commands.Path("work/records.jsonl"), "")
    assert baseline.plan.placement == "core"
    cpus = set(baseline.plan.cpus)
    assert all({*thread.affinity} <= cpus for rank in candidate.launches[0].ranks for thread in rank.threads)
    assert document["series"][0]["verdict"] == "FAIL"


def test_a_figure_by_another_clock_than_the_kernels_is_invalid_and_a_time_is_not(gate, tmp_path):
    code = "double omp_get_wtime(void) { static int calls; return 9 * calls++; }"
    tool = compile_c(tmp_path, code, "-shared", "-fPIC", name="libtool.so")
    sides = both("./old 200", f"./new 199,variable:LD_PRELOAD={tool}")
    status, document, _ = gate(*sides, *FIGURE)
    assert status == 3
    assert "the command read a clock that is not the kernel's: by omp_get_wtime, " in document["series"][0]["reason"]
    shutil.rmtree("work")
    assert gate(*sides, "--tolerance", "900%", "--must-detect", "950%", "--minutes", "9")[0] == 0


def test_an_observed_program_gets_its_own_number_and_the_variables(tmp_path):
    words = ["sh", "-c", 'echo "$PLUMB_WITNESS_PID $$ $A $PWD"']
    ended = process.run(words, {"PATH": "/usr/bin:/bin", "A": "b"}, tmp_path, 600, at=tmp_path.parent, observed=True)
    number, process_id, variable, place = (tmp_path / "stdout").read_text().split()
    assert (number, variable, place) == (process_id, "b", str(tmp_path.parent))
    assert 0 < ended.ran_s <= ended.wall_s
