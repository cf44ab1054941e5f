"""Each kind of knowledge has one room: what is a scheduler's in plumbline/schedulers, what is a host's in host."""

import ast
import functools
import io
import re
import tokenize
from pathlib import Path

from plumbline import schedulers

PACKAGE = Path(schedulers.__file__).resolve().parents[1]
#: programs of schedulers, and how their variables begin; the schedulers' own names come from the table
PROGRAMS = """sbatch srun salloc sinfo scontrol sacct scancel squeue qsub qstat qdel qhost pbsnodes pbsdsh
    bsub bjobs bkill bhosts bqueues blaunch"""
VARIABLES = "SLURM_ SLURMD_ SRUN_ PBS_ LSB_ PE_HOSTFILE FLUX_"
#: files below plumbline/ that may name some, and why
ALLOWED = {
    "host/collector.py": (
        {"slurm", "srun", "scontrol", "slurm_step_id", "slurm_cpu_bind", "slurm_procid", "slurmd_nodename"},
        "it is one file that runs alone on a node, and reports what Slurm is told there",
    ),
    "base/surroundings.py": ({"sinfo", "squeue", "sacct", "ssh"}, "the table of all variables that reach us is one"),
    "base/schemas/site.py": ({"srun_mpi"}, "a member of site.yaml is called so"),
    **dict.fromkeys(
        ("launch/prepare.py", "mpi/base.py", "mpi/openmpi.py", "mpi/mpich.py", "mpi/intelmpi.py"),
        ({"ssh"}, "the remote shell by which the launchers of MPI libraries reach hosts, which is not a scheduler"),
    ),
}


def words() -> re.Pattern[str]:
    """What gives a scheduler away, in small letters."""
    names = {name for name in schedulers.TABLE if name != "local"}  # that is a word, and the name of a site
    whole = "|".join(sorted({*names, *PROGRAMS.split()}))
    begins = "|".join(VARIABLES.lower().split())
    return re.compile(rf"(?<![a-z0-9])(?:(?:{begins})\w*|(?:{whole})(?![a-z0-9]))")


def found_in(text: str) -> set[str]:
    """The words in the code of a module, strings included; comments and docstrings are prose."""
    pattern, places, before = words(), set(), tokenize.INDENT
    if not pattern.search(text.lower()):
        return places
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL):
            continue
        docstring = token.type == tokenize.STRING and before in (tokenize.INDENT, tokenize.NEWLINE)
        if not docstring:
            places.update(pattern.findall(token.string.lower()))
        before = token.type
    return places


@functools.cache
def found() -> dict[str, set[str]]:
    """The words in every module of the package but those of the room."""
    files = (file for file in PACKAGE.rglob("*.py") if not file.is_relative_to(PACKAGE / "schedulers"))
    return {str(file.relative_to(PACKAGE)): found_in(file.read_text(encoding="utf-8")) for file in files}


def test_schedulers_are_known_in_their_room_only():
    outside = {name: words - ALLOWED.get(name, (set(), ""))[0] for name, words in found().items()}
    assert {name: words for name, words in outside.items() if words} == {}


def test_no_exception_outlives_its_reason():
    places = found()
    assert [name for name, (words, _) in ALLOWED.items() if not words <= places[name]] == []


def test_the_rule_finds_a_name():
    text = '"""Slurm."""\n# qsub\nx = "squeue"\nif x == f"{x} PBS_JOBID":\n    "srun here"\n    pass\n'
    assert found_in(text) == {"squeue", "pbs_jobid"}


def test_proc_and_sys_are_read_in_the_room_of_the_host():
    """But for what the processes of a launch have mapped."""
    begins = re.compile(r"/(proc|sys)(/|$)")
    texts = {str(file.relative_to(PACKAGE)): file.read_text() for file in PACKAGE.rglob("*.py")}
    readers = {
        name
        for name, text in texts.items()
        for item in (ast.walk(ast.parse(text)) if re.search(r"/(proc|sys)\b", text) else ())
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and begins.match(item.value)
    }
    assert "host/proc.py" in readers
    assert {name for name in readers if not name.startswith(("host/", "launch/"))} == set()


#: modules of commands/ that are not commands
SHARED = {"cli", "options", "table"}


def test_no_command_takes_anything_from_another():
    """What two commands need belongs into a room below them."""
    taken = {}
    for file in (PACKAGE / "commands").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("plumbline.commands"):
                names = {node.module.rpartition(".")[2], *(alias.name for alias in node.names)}
                taken.setdefault(file.stem, set()).update(names)
    commands = {file.stem for file in (PACKAGE / "commands").glob("*.py")} - SHARED - {"__init__"}
    # the shell's completion is of all commands, and the command line starts it
    assert {name: found & commands for name, found in taken.items() if found & commands} == {"cli": {"completion"}}
