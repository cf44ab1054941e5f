"""Programs that others wrote: which of them are proven, and what is said of those that cannot be."""

import os
import shutil
from pathlib import Path
from typing import Any

import own_code
import pytest

pytestmark = pytest.mark.e2e

FILES = Path(__file__).resolve().parents[1] / "support" / "foreign"
BUILD = [
    "mpicc -pthread -o threads threads.c",
    "mpicxx -pthread -o pool pool.cpp",
    "cc -o late late.c -ldl",
    "cc -fopenmp -o openmp openmp.c",
]
RATE = {"pattern": r"Rate: (?P<value>\S+) (?P<unit>\S+)", "unit": "GF/s", "better": "higher"}
#: one rank of two threads
TWO = {"placements": ["numa"], "ranks": 1, "threads": 2}
ALONE = {"placements": ["numa"], "ranks": 1, "threads": 1}
RANKS, ITSELF = {"binds": "ranks"}, {"binds": "itself"}
#: name -> (command, members of its description, what is said; None: it is verified)
PROGRAMS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "unbound": ("./threads two", TWO, "threads are on: 0-1; write binds: ranks in plumb.yaml if these are not threads"),
    "pthreads": ("./threads two", TWO | RANKS, None),
    "cplusplus": ("./pool", TWO | RANKS, None),
    "python": ("python threads.py", TWO | RANKS | {"inputs": ["threads.py"]}, None),
    "idle": ("./threads one", TWO, "write threads: 1 in plumb.yaml, as one thread of each rank worked"),
    "becomes": ("./becomes.sh", {}, None),
    "starts": ("./starts.sh", {}, None),
    "helpers": ("./threads helpers", {}, None),
    "servant": ("./threads servant", {}, None),
    "child": ("./threads child", {}, None),
    "forsaken": (
        "./threads forsaken",
        {},
        "if these are the program's helpers, link them dynamically, and let them end",
    ),
    "processes": ("python processes.py", ALONE | {"mpi": False, "inputs": ["processes.py"]}, None),
    "late": ("./late", ALONE, None),
    "finalized": ("./threads finalized", {}, None),
    "vanishes": ("./threads vanishes", {}, "the ranks are linked statically, or ended by _exit before MPI_Finalize: "),
    "quits": ("./threads quits", {}, "exiting improperly; let each rank call MPI_Finalize"),
    "bound": ("./threads bound", TWO | ITSELF, None),
    "rank": ("./threads process", ITSELF, None),
    "places": ("./openmp", TWO | ITSELF | {"mpi": False, "environment": {"OMP_PLACES": "cores"}}, None),
    "unsaid": ("./threads bound", TWO, "if the program binds its threads, write binds: itself in plumb.yaml"),
    "swapped": ("./threads swapped", ITSELF, "write the placement in plumb.yaml that the program binds its threads as"),
    "openmp": ("./openmp", TWO | {"mpi": False}, None),
    "serial": ("./openmp", TWO, "never called MPI_Init, or their MPI library is linked statically"),
    "reads": ("./threads reads", {"stdin": "steps.txt"}, None),
    "unread": ("./threads reads", {}, "the launcher ended with exit status 5"),
    "killed": ("./threads killed", {}, "exited on signal 9 (Killed)"),
    "fails": ("./threads fails", {}, "nothing (the standard output); it printed: Error: the solver diverged in step 7"),
    "refuses": ("./threads refuses", {}, "exit status 3: a lattice of side 7 has no checkerboard"),
    "limited": ("./little.sh", {}, "exit status 4: 16 MiB more: Cannot allocate memory"),
    "caged": ("./little.sh CAGE", {}, "(Killed); memory ran out: the kernel killed 1 of the node's processes"),
    "tasks": ("./tasks", TWO | RANKS | {"mpi": False}, None),
}
#: those that other tests look at too
ALSO = {"unbound", "bound", "rank", "starts"}
#: relatives of programs that stay in `make test`, and those of which a unit test has the words
RELATIVES = (
    *("cplusplus", "python", "becomes", "servant", "child", "processes", "finalized", "quits", "swapped", "reads"),
    *("refuses", "limited", "tasks", "helpers", "unsaid", "unread", "killed", "places"),
)
#: bytes that the programs in the cage may have
CAGE_BYTES = 256 << 20


def cage() -> Path | None:
    """A control group with little memory, of version 1 or 2; None where none can be made."""
    for top, limit in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        folder = Path("/sys/fs/cgroup", top, f"plumbline-test-{os.getpid()}")
        try:
            folder.mkdir()
            (folder / limit).write_text(str(CAGE_BYTES))
        except OSError:
            if folder.is_dir():
                folder.rmdir()
            continue
        return folder
    return None


@pytest.fixture(scope="module")
def ran(request, tmp_path_factory):
    """(what can be run here, records by program) of ``plumb run``, of the programs that are looked at."""
    folder = tmp_path_factory.mktemp("foreign")
    code, around, caged = folder / "code", own_code.variables(folder), cage()
    shutil.copytree(FILES, code)
    chosen = {item.name.partition("[")[2].rstrip("]") for item in request.session.items if item.path == request.path}
    left = set(PROGRAMS) & (chosen | ALSO) - (set() if caged else {"caged"})
    build = BUILD
    if any((Path(place) / "tbb").is_dir() for place in ["/usr/include", *os.environ.get("CPATH", "").split(":")]):
        build = [*BUILD, "c++ -o tasks tasks.cpp -ltbb"]
    else:
        left.discard("tasks")
    programs = {
        name: {
            "command": command.replace("CAGE", str(caged / "cgroup.procs" if caged else "")),
            "figures": {"rate": RATE},
            "launches": 1,
            "time_limit_s": 120,
            **members,
        }
        for name, (command, members, _) in PROGRAMS.items()
        if name in left
    }
    own_code.commit(code, {"application": "foreign", "build": build, "programs": programs})
    try:
        own_code.plumb(code, around, "run", "--stack", "openmpi")
    finally:
        if caged:
            caged.rmdir()
    return left, own_code.records(around)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in RELATIVES else ()) for name in PROGRAMS]
)
def test_what_cannot_be_proven_says_why_and_what_to_write(ran, name):
    if name not in ran[0]:
        pytest.skip("no control group can be made here" if name == "caged" else "no headers of oneTBB here")
    record, (_, _, said) = ran[1][name], PROGRAMS[name]
    if said is None:
        assert record["reasons"] == []
        assert [figure["unit"] for figure in record["figures"]] == ["GF/s"]
    else:
        assert record["figures"] == []
        assert any(said in reason for reason in record["reasons"]), record["reasons"]


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """(folder, variables) of a repository whose tag second does not compile, and whose third makes no program."""
    folder = tmp_path_factory.mktemp("broken")
    code, around = folder / "code", own_code.variables(folder)
    code.mkdir()
    program = {"command": "./code", "figures": {"time": {"wall": True}}, "mpi": False}
    document = {"application": "code", "build": ["cc -c code.c", "cc -o code code.o"], "programs": {"code": program}}
    for name, text, build in (
        ("first", "int main(void) { return 0; }\n", document["build"]),
        ("second", "int main(void) { return none; }\n", document["build"]),
        ("third", "int main(void) { return 0; }\n", document["build"][:1]),
    ):
        (code / "code.c").write_text(text)
        own_code.commit(code, {**document, "build": build}, name)
    return code, around


@pytest.mark.parametrize(("baseline", "candidate", "said"), [
    ("first", "second", "plumb: candidate second: the build of {second} fails with mpich: code.c:1:25: error: "),
    ("second", "first", "plumb: baseline second: the build of {second} fails with mpich: code.c:1:25: error: "),
    ("first", "third", "plumb: candidate third: no test ran: there is no program ./code, built with mpich ("),
])  # fmt: skip
def test_a_side_that_cannot_be_built_ends_a_gate_before_anything_is_measured(broken, baseline, candidate, said):
    code, around = broken
    words = ("--baseline", baseline, "--candidate", candidate, "--stack", "mpich")
    status, output = own_code.plumb(code, around, "gate", *words)
    assert status == 3
    last = output.splitlines()[-1]
    assert said.format(second=own_code.git(code, "rev-parse", "second")[:12]) in last
    assert own_code.records(around) == {}


def test_a_cure_is_said_once(ran):
    assert len(ran[1]["unbound"]["reasons"]) == 2
    assert str(ran[1]["unbound"]["reasons"]).count("write") == 1


def test_the_record_shows_that_the_program_bound_itself(ran):
    (launch,) = ran[1]["bound"]["launches"]
    assert launch["remarks"] == ["the program bound its threads itself, as numa has them"]
    command = ran[1]["bound"]["command"]
    assert command[command.index("--placement") + 1] == "none"
    assert [rank["cpus"] for rank in ran[1]["rank"]["plan"]["ranks"]] == [[0], [1]]


def test_its_figure_is_not_hidden_by_the_words_of_a_wrapper(ran):
    assert ran[1]["starts"]["launches"][0]["ranks"][0]["program"].endswith("/threads")
