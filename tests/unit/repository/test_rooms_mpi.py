"""What is known of MPI library families stands in plumbline/mpi, and agrees with the schemas and the C sources."""

import io
import json
import os
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline import mpi
from plumbline.base import paths

ROOM = paths.root() / "plumbline"
#: names of the families, of their launchers, and how their variables begin
NAMES = re.compile(
    r"(?i:\b(?:openmpi|mpich|intelmpi|mvapich|hydra|prrte|orte|prte|prterun|mpiexec)\b)"
    r"|\b(?:OMPI|OPAL|PRTE|I_MPI|MPIR|MV2|MVP|HYDRA|PMIX|PALS)_|\bPMI_(?:RANK|SIZE|LOCAL)"
)
#: modules outside of the room that name a family, and why
EXCEPTIONS = {
    "commands/table.py": "examples in the help",
    "stacks/wheel.py": "the packages of the registry and the programs in them",
    "commands/stacks.py": "examples in its help",
    "extras/__init__.py": "examples in the help",
    "stacks/osu.py": "the host that has the archive of OSU",
    "extras/spack/environments.py": "the packages of Spack",
}


def names_in(file: Path) -> Iterator[str]:
    """The names in code and strings of ``file``; comments and docstrings explain and may name anything."""
    text = file.read_text(encoding="utf-8")
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if NAMES.search(text) else ():
        layout = token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
        docstring = token.type == tokenize.STRING and before == tokenize.NEWLINE
        if not layout and not docstring:
            yield from (f"line {token.start[0]}: {found[0]}" for found in NAMES.finditer(token.string))
        if not layout:
            before = token.type


def test_no_family_is_named_outside_of_the_room():
    files = (file for file in ROOM.rglob("*.py") if not file.is_relative_to(ROOM / "mpi"))
    found = {str(file.relative_to(ROOM)): list(names_in(file)) for file in files}
    assert {name: places for name, places in found.items() if places and name not in EXCEPTIONS} == {}
    assert [name for name in EXCEPTIONS if not found[name]] == [], "an exception that is none any more"


def test_no_page_or_script_names_a_family():
    kinds = (".js", ".css", ".html", ".sh")
    files = [file for file in ROOM.rglob("*") if file.suffix in kinds and "vendor" not in file.parts]
    assert files
    assert [str(file) for file in files if NAMES.search(file.read_text(encoding="utf-8"))] == []


def test_the_rule_finds_a_name(tmp_path):
    file = tmp_path / "a.py"
    file.write_text('"""openmpi."""\n# mpich\nx = "I_MPI_PIN"\ny = f"{x} openmpi"\n')
    assert [name.split()[-1] for name in names_in(file)] == ["I_MPI_", "openmpi"]


def test_c_and_python_have_the_same_rank_variables():
    text = (paths.root() / "custom-kernels/common/rank_variables.c").read_text(encoding="utf-8")
    table = text[text.index("rank_variables[][RANK_COLUMNS]") : text.index("};")]
    rows = [re.findall(r'NULL|"(\w+)"', row) for row in re.findall(r"\{([^{}]*)\}", table)]
    *known, end = [tuple(name or None for name in row) for row in rows]
    assert end == (None,) * 4
    assert known == [tuple(row) for row in mpi.RANK_VARIABLES]


@pytest.mark.parametrize("row", [row for row in mpi.RANK_VARIABLES if row.local_rank], ids=lambda row: row.local_rank)
def test_binder_and_witness_read_every_row(row, tmp_path):
    told = {row.rank: "5", row.local_rank: "0", row.local_size: "1", row.size: "8"}
    environment = {name: value for name, value in told.items() if name}
    command = [str(paths.binder()), "--placement", "none", "--witness", str(tmp_path), "--", "sleep", "0"]
    subprocess.run(command, env={"PATH": os.environ["PATH"], **environment}, check=True)
    (seen,) = [json.loads(file.read_text(encoding="utf-8")) for file in tmp_path.glob("*.json")]
    assert (seen["rank"], seen["local_rank"], seen["size"]) == (5, 0, 8 if row.size else -1)


def test_c_files_have_names_of_their_own():
    names = Counter(file.name for file in (paths.root() / "custom-kernels").rglob("*.[ch]"))
    assert [name for name, count in names.items() if count > 1] == []
