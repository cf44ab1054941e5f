"""The package declares all that it imports, and works where pip installed it alone: no checkout, no other package."""

import ast
import functools
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from plumbline import __version__
from plumbline.base import paths

ROOT = paths.root()
#: what pip needs to take stacks from archives without build isolation
INSTALLERS = {"hatchling", "pip", "setuptools"}
#: what only plumb compact asks for, where it meets records that an earlier version compacted
ASKED_FOR = {"polars"}
#: commands that need the extra
OF_CAMPAIGNS = ("history",)
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def imported() -> set[str]:
    """The distributions of all modules that the package imports."""
    owners = metadata.packages_distributions()
    modules = set()
    for file in (ROOT / "plumbline").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    return {canonical(owners[name][0]) for name in modules - set(sys.stdlib_module_names) - {"plumbline"}}


def required(distribution: metadata.Distribution, extras: Iterable[str] = ("",)) -> Iterator[tuple[str, set[str]]]:
    """What ``distribution`` needs here with some of its ``extras``, and the extras of that."""
    from packaging.requirements import Requirement

    for text in distribution.requires or ():
        needed = Requirement(text)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
            yield canonical(needed.name), needed.extras


def test_recipes_of_spack_and_easybuild_follow_the_package():
    locks = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-dev.txt").read_text()
    recipes = ROOT / "spack-env" / "package" / "spack_repo" / "plumbline" / "packages"
    (easybuild,) = ROOT.glob(f"docs/examples/Plumbline-{__version__}.eb")
    assert f"version = '{__version__}'" in easybuild.read_text()
    for file in (easybuild, *recipes.glob("*/package.py")):
        assert all(digest in locks for digest in re.findall("[0-9a-f]{64}", file.read_text())), file
    spack = (recipes / "py_plumbline_hpc" / "package.py").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    needed = re.search(r"^dependencies = \[(.*?)\]", project, re.DOTALL | re.MULTILINE)[1]
    for name in re.findall(r'"([\w.-]+)', needed):
        assert f'"{canonical(name)}"' in spack, name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package without its C tools."""
    folder = tmp_path_factory.mktemp("wheel")
    alone = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "-C", "wheel.cmake=false"]
    subprocess.run([*PIP, "wheel", *alone, "--wheel-dir", folder, ROOT], check=True)
    (file,) = folder.glob("plumbline_hpc-*.whl")
    return file


@pytest.fixture(scope="module", params=["", "campaign"])
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment, named as the extra, with the package and the distributions that its metadata lead to."""
    environment = tmp_path_factory.mktemp("installed") / (request.param or "alone")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    alone = ["--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*PIP, "--python", environment / "bin" / "python", "install", *alone, wheel], check=True)
    place = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (package,) = metadata.distributions(name="plumbline-hpc", path=[str(place)])
    bring(required(package, [request.param]), place)
    return environment


def bring(wanted: Iterable[tuple[str, set[str]]], place: Path) -> None:
    """Link the distributions ``wanted``, and all that they need, into a folder."""
    here = {canonical(one.metadata["Name"]): one for one in metadata.distributions()}
    queue, known = list(wanted), set[str]()
    while queue:
        name, extras = queue.pop()
        if name not in known:
            known.add(name)
            queue += required(here[name], extras or ("",))
            link(here[name], place)


def link(distribution: metadata.Distribution, place: Path) -> None:
    """Give the environment of ``place`` what ``distribution`` has, by symbolic links to its top-level names."""
    for top in {Path(file).parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
        target = Path(str(distribution.locate_file(top)))
        if not (place / top).exists():
            (place / top).symlink_to(target)


def test_every_import_is_declared_and_every_dependency_is_imported():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    blocks = re.findall(r"^(?:dependencies|campaign) = \[(.*?)\]$", text, re.DOTALL | re.MULTILINE)
    declared = {canonical(re.split(r"[\[<>=!~ ]", name)[0]) for name in re.findall(r'"([^"]+)"', " ".join(blocks))}
    assert declared == imported() - ASKED_FOR | INSTALLERS


def test_set_up_and_the_package_have_no_dependency_twice():
    lines = (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
    tools = {canonical(re.split(r"[<>=!~ ]", line)[0]) for line in lines if line and not line.startswith("#")}
    assert not tools & imported()
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    locked = {canonical(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    assert locked >= tools | imported() - ASKED_FOR


def run(installed: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PLUMB_", "PYTHON", "XDG_"))}
    command, around = [str(installed / "bin" / "plumb"), *words], {**clean, "HOME": str(home)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=home, env=around)


@pytest.mark.parametrize(("words", "status", "said"), [
    ("--version", 0, "(wheel in "),
    ("gate --pairs pairs.csv --better lower --output verdict.json", 0, "gate: PASS: 1 PASS"),
    ("history --series series.csv --better lower", 0, '"alarms": []'),
    ("list", 0, "no records yet ({home}/.local/share/plumbline/results)"),
    ("doctor", None, " to fix, "),
    ("stack list", 0, "not installed: plumb stack install spack:openmpi"),
    ("stack install openmpi --dry-run", 0, "openmpi: would be installed (not installed)"),
    ("setup", 2, "plumb-bind is not built"),
    ("gate --baseline HEAD --candidate HEAD", 3, "commits of the suite need a checkout of it"),
])  # fmt: skip
def test_an_installed_package_needs_nothing_else(words, status, said, installed, tmp_path):
    values = [10 + place % 7 / 100 for place in range(90)]
    pairs = (f"a,{value},{values[(place + 3) % 90]}\n" for place, value in enumerate(values))
    (tmp_path / "pairs.csv").write_text(f"series,baseline,candidate\n{''.join(pairs)}")
    rows = (f"a,{place},{value}\n" for place, value in enumerate(values))
    (tmp_path / "series.csv").write_text(f"series,index,value\n{''.join(rows)}")
    before = sorted(path for path in installed.rglob("*") if "__pycache__" not in path.parts)
    done = run(installed, tmp_path, *words.split())
    if installed.name == "alone" and words.startswith(OF_CAMPAIGNS):
        assert "pip install 'WHEEL[campaign]'" in done.stderr
        assert done.returncode == 3
        return
    assert "error in Plumbline" not in done.stderr, done.stderr
    assert said.format(home=tmp_path) in done.stdout + done.stderr
    assert status is None or done.returncode == status, done.stdout + done.stderr
    assert sorted(path for path in installed.rglob("*") if "__pycache__" not in path.parts) == before
