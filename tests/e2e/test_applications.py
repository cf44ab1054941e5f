"""``plumb run`` on a repository that is not ours: programs that behave, and each way in which one may not."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import own_code
import pytest
import stored
from processes import ended

from plumbline.base import paths
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e

SUPPORT = Path(__file__).resolve().parents[1] / "support"
PROGRAM = (SUPPORT / "application.c").read_text()
SCRIPT = """
import os, time
from mpi4py import MPI
end = time.process_time() + 0.2
while time.process_time() < end: pass
total = MPI.COMM_WORLD.reduce(MPI.COMM_WORLD.rank + 1)
if MPI.COMM_WORLD.rank == 0:
    with open("result.json", "w") as file:
        file.write('{"rate": 10.%d, "sum": %d}' % (os.getpid(), total))
"""
#: how the C program behaves -> what its record says; None: it has figures. The parser's reasons are in
#: tests/unit/parsers/test_parsers_application.py, other programs in test_foreign_programs.py
BEHAVIOUR = {
    "well": None,
    "wrong": "wrong answer: 1.26, 1.25 expected within 0.00125",
    "leaves": "daemons that the ranks left",
    "pool": None,
    "alike": "but no thread is bound there",
}
RATE = {"pattern": r"Rate: (?P<value>\S+) (?P<unit>\S+)", "unit": "GF/s", "better": "higher"}


def program(**members: object) -> dict[str, object]:
    return {"figures": {"rate": RATE, "time": {"wall": True}}, "launches": 1, "time_limit_s": 300, **members}


def described() -> dict[str, Any]:
    check = {"pattern": r"Sum: (\S+)", "value": 1.25, "tolerance": 0.001}
    programs = {name: program(command=["./program", name], checks=[check]) for name in BEHAVIOUR}
    for name in ("pool", "alike"):
        programs[name] |= {"placements": ["numa"], "ranks": 1, "threads": 2}
    programs["pool"] |= {"binds": "ranks", "threads": [2]}
    programs["serial"] = program(command="./program alone", mpi=False, placements=["numa"], ranks=1, threads=1)
    rate = {"json": "rate", "file": "result.json", "unit": "GF/s", "better": "higher"}
    check = {"pattern": r'"sum": (\d+)', "value": 3, "file": "result.json"}
    python = program(command="python solve.py", inputs=["solve.py"], checks=[check])
    programs["python"] = {**python, "figures": {"rate": rate}}
    return {"application": "odd", "build": ["mpicc -pthread -o program program.c"], "programs": programs}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(exit status, output, records by program) of ``plumb run`` in a repository, which stays as it is; and this."""
    folder = tmp_path_factory.mktemp("own") / "odd"
    folder.mkdir()
    (folder / "program.c").write_text(PROGRAM)
    (folder / "solve.py").write_text(SCRIPT)
    own_code.commit(folder, described())
    around = own_code.variables(folder.parent)
    status, output = own_code.plumb(folder, around, "run", "--stack", "openmpi")
    assert own_code.git(folder, "status", "--porcelain", "--ignored") == ""
    return status, output, own_code.records(around), (folder, around)


@pytest.mark.parametrize("name", BEHAVIOUR)
def test_what_a_program_does_is_said(ran, name):
    record, said = ran[2][name], BEHAVIOUR[name]
    if said is None:
        assert record["reasons"] == []
        assert [figure["unit"] for figure in record["figures"]] == ["GF/s", "s"]
        assert all(0.1 < sample < 300 for sample in record["figures"][1]["samples"])
    else:
        assert record["figures"] == []
        assert any(said in reason for reason in record["reasons"]), record["reasons"]


def test_a_program_without_mpi_and_a_script_are_measured(ran):
    for name in ("serial", "python"):
        assert ran[2][name]["reasons"] == []
    assert len(ran[2]["serial"]["launches"][0]["ranks"]) == 1
    assert [figure["name"] for figure in ran[2]["python"]["figures"]] == ["rate"]


def test_several_numbers_of_threads_are_variants(ran):
    assert ran[2]["pool"]["variant"]["name"] == "odd_pool %placement=numa %threads=2"
    assert ran[2]["alike"]["variant"]["name"] == "odd_alike %placement=numa"


def test_its_records_name_the_commit(ran):
    (commit,) = {one["variant"]["application"]["commit"] for one in ran[2].values()}
    assert len(commit) == 40


def test_the_campaign_says_what_failed(ran):
    status, output, *_ = ran
    assert status == 1
    assert "odd: building" in output
    assert "failed odd_wrong %placement=core on openmpi (default): launch 0: wrong answer: 1.26" in output


@pytest.mark.parametrize(("words", "said"), [
    (["list"], "odd_serial"),
    (["show", "RECORD"], "verified"),
    (["history"], "odd_well %placement=core"),
    (["report", "--output", "report.html"], "report.html"),
    (["publish", "pages"], "published: "),
    (["calibrate", "--dry-run"], "0 references would change"),
    (["export", "--format", "csv", "--output", "figures.csv"], "figures.csv"),
], ids=lambda one: one[0] if isinstance(one, list) else "")  # fmt: skip
def test_every_view_takes_them(ran, words, said):
    _, _, records, (folder, around) = ran
    words = [records["well"]["id"] if word == "RECORD" else word for word in words]
    status, output = own_code.plumb(folder.parent, around, *words)
    assert said in output
    assert status == (1 if words[0] == "calibrate" else 0), output  # one session makes no reference


def test_a_record_is_reproduced(ran):
    _, _, records, (_, around) = ran
    output = own_code.succeeds(Path("/"), around, "reproduce", records["well"]["id"])
    assert re.search(r"^verified: plumb show [0-9a-f]{12}$", output.splitlines()[-1])
    assert "rate" in output


@pytest.mark.parametrize(("key", "reason"), [
    pytest.param("inputs", "write copy: [case, plan] in plumb.yaml: each launch gets", marks=pytest.mark.long),
    ("copy", None),
])  # fmt: skip
def test_launches_start_from_the_same_files_by_themselves(tmp_path, key, reason):
    """Also: one process, and no launcher, for a program without MPI; its build makes what it reads."""
    folder = tmp_path / "plan"
    folder.mkdir()
    shutil.copy(SUPPORT / "application_plan.c", folder / "plan.c")
    time = {"pattern": r"Time: (\S+)", "unit": "s"}
    described = {
        "command": "./plan", "mpi": False, "threads": 1, "placements": ["none"], "launches": 2, "time_limit_s": 300,
        "figures": {"time": time}, "checks": [{"pattern": "Steps: 1$"}],
        **({"copy": ["plan", "case"]} if key == "copy" else {"inputs": ["case"]}),
    }  # fmt: skip
    build = ["cc -o plan plan.c", "mkdir case && echo 1 > case/state"]
    own_code.commit(folder, {"application": "plan", "build": build, "programs": {"plan": described}})
    around = own_code.variables(tmp_path)
    status, output = own_code.plumb(folder, around, "run", "--stack", "openmpi")
    record = own_code.records(around)["plan"]
    assert Path(record["command"][0]).name == "plumb-bind"
    if reason:
        assert reason in record["reasons"][0]
        assert record["launches"][0]["reasons"][1] == "the launch changed files of the build: plan.plan (new)"
        assert "had been changed before this launch" in " ".join(record["launches"][1]["reasons"])
    else:
        assert (status, record["reasons"]) == (0, []), output
        assert min(record["figures"][0]["samples"]) > 0.29
        assert "building" not in own_code.plumb(folder, around, "run", "--stack", "openmpi", "--launches", "1")[1]


@pytest.fixture(scope="module")
def of_any_mpi(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A program that works half as long again with MPICH, to be built once for all libraries with the standard ABI."""
    folder = tmp_path_factory.mktemp("abi") / "code"
    folder.mkdir()
    slow = """    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(name, &length);
    if (strstr(name, "MPICH Version")) work(0.1);
    work(0.2);
    if"""
    (folder / "program.c").write_text(PROGRAM.replace("    work(0.2);\n    if", slow))
    document = {**described(), "application": "code", "mpi_abi": "standard"}
    document["programs"] = {"code": program(command=["./program", "well"]) | {"figures": {"time": {"wall": True}}}}
    own_code.commit(folder, document)
    return folder, own_code.variables(folder.parent)


def test_one_build_runs_on_each_library_with_the_standard_abi_and_they_are_compared(of_any_mpi):
    folder, around = of_any_mpi
    output = own_code.succeeds(folder, around, "run")
    found = stored.sound(around["PLUMB_RESULTS"])
    assert {record["stack"]["name"] for record in found} == {"mpich", "intelmpi"}
    assert len({record["benchmark"]["sha256"] for record in found}) == 1
    assert all(record["reasons"] == [] for record in found)
    output = own_code.succeeds(folder, around, "compare", "mpich", "intelmpi")
    assert " of 1 figure " in output.splitlines()[-1]


@pytest.mark.long
def test_the_library_that_runs_it_fastest_is_named(of_any_mpi):
    status, output = own_code.plumb(*of_any_mpi, "run", "--any-mpi", "--minutes", "0.7")
    closing = output.splitlines()[-1]
    if status:  # other programs disturbed the launches, or left time for too few
        assert {2: "INCONCLUSIVE: ", 3: "INVALID: "}[status] in output
        assert closing == "1 figure: fastest is mpich in 0, intelmpi in 0, none alone in 1"
    else:
        assert (status, closing) == (0, "1 figure: fastest is mpich in 0, intelmpi in 1, none alone in 0"), output


def test_a_program_with_the_abi_of_a_library_is_refused(of_any_mpi):
    folder, around = of_any_mpi
    file = folder / "plumb.yaml"
    own = Path(manifest.load("intelmpi").prefix) / "bin" / "mpicc"
    file.write_text(file.read_text().replace("mpicc", str(own)))
    status, output = own_code.plumb(folder, around, "run")
    own_code.git(folder, "checkout", "plumb.yaml")
    assert status == 2
    assert "plumb: code is not built for the standard MPI ABI: it needs libmpi.so.12" in output
    assert "build it with mpicc or mpicxx or mpic++ as PATH has them" in output


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """Two commits, the second of which works half as long again; and the variables of the commands there."""
    folder = tmp_path_factory.mktemp("merge") / "code"
    folder.mkdir()
    document = described()
    document["programs"] = {"code": program(command=["./program", "well"], placements=["core", "numa"])}
    for name, seconds in (("first", "0.2"), ("second", "0.3")):
        (folder / "program.c").write_text(PROGRAM.replace("    work(0.2);\n    if", f"    work({seconds});\n    if"))
        own_code.commit(folder, {**document, "application": "code"}, name)
    return folder, own_code.variables(folder.parent)


def gate(repository: tuple[Path, dict[str, str]], *words: str) -> tuple[int, str, list[dict[str, Any]]]:
    """(exit status, output, the two records) of a gate of five seconds."""
    folder, around = repository
    status, output = own_code.plumb(folder, around, "gate", *words, "--minutes", "0.08")
    newest = max(Path(around["PLUMB_RESULTS"]).glob("local/*.jsonl"))
    records = [json.loads(line) for line in newest.read_text().splitlines()]
    return status, output, records


def used(launch: dict[str, Any]) -> float:
    """CPU time of the rank that used least, in s."""
    return min(rank["usage"]["user_s"] + rank["usage"]["system_s"] for rank in launch["ranks"])


def test_a_slower_commit_never_passes(repository):
    words = ("--baseline", "first", "--candidate", "second", "--stack", "mpich", "--test", "code%placement=core")
    status, output, records = gate(repository, *words)
    assert status in (1, 2, 3), output  # a short gate may end without a verdict
    assert "first (" in output
    assert [record["side"] for record in records] == ["baseline", "candidate"]
    commits = [record["variant"]["application"]["commit"] for record in records]
    assert len(set(commits)) == 2
    first, second = (min(used(launch) for launch in record["launches"]) for record in records)
    assert first < second


@pytest.mark.long
def test_equal_code_under_two_placements_is_one_pair(repository):
    words = ("--baseline", "placement:core", "--candidate", "placement:numa,threads:1", "--stack", "mpich")
    status, output, records = gate(repository, *words)
    assert status in (0, 1, 2, 3), output
    assert [record["variant"]["placement"] for record in records] == ["core", "numa"]
    assert len({record["variant"]["application"]["commit"] for record in records}) == 1
    assert len({record["variant"]["name"] for record in records}) == 1


def test_a_program_is_profiled_by_its_name(repository):
    folder, around = repository
    command = [paths.program("plumb"), "profile", "code", "--stack", "mpich", "--json"]
    answer = ended(command, env=around, cwd=folder, timeout=60)
    assert "verified" in answer.stderr
    first, _ = json.JSONDecoder().raw_decode(answer.stdout)
    assert first["variant"] == "code %placement=core"
    assert [rank["rank"] for rank in first["ranks"]] == [0, 1]
    command[2] = "cod"
    answer = ended(command, env=around, cwd=folder, timeout=60)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "plumb.yaml has no program 'cod'" in answer.stderr
    assert "did you mean 'code'?" in answer.stderr
