"""The wheel: built from the sdist by pip, installed away from the checkout, and used as by a new user.

Where the tests run as root, the commands run as a user who is not: root uses a checkout in all other tests.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import gitlab_runner
import own_code
import published
import pytest
from processes import ended, succeeded
from witness_helper import PROGRAMS

from plumbline.base import paths

#: the licence texts of what auditwheel puts into it
LICENCES = {"hwloc": "hwloc.txt", "udev": "LGPL-2.1.txt"}
#: how pip says that it reaches no registry
UNREACHABLE = "NewConnectionError|ConnectTimeoutError|NameResolutionError|Temporary failure|ProxyError|refused"
#: why a gate that had little time judges nothing where other work disturbed its launches
TOO_BUSY = "pairs: 13 are needed|every launch was disturbed and measured again"
pytestmark = pytest.mark.e2e

BIN = Path(sys.executable).parent
TOOLS = (
    *(f"bin/plumb-{name}" for name in ("bind", "check", "neighbour", "trace", "check-gpu")),
    *(f"lib/libplumb{name}.so" for name in ("witness", "profile", "yields")),
)
#: what of a checkout is in a wheel, below plumbline/suite
MACHINES = ("comet", "gpc", "ranger", "rrze-nehalem", "rrze-westmere", "rrze-woodcrest", "ulysses")
SUITE = (
    "custom-kernels", "docs/examples/heat", "reframe-tests", "spack-env",
    *(f"site-configs/{name}" for name in MACHINES),
)  # fmt: skip
FILES = ("requirements.txt", "site-configs/settings.py")
DESCRIPTION = r"""
application: own
build: [mpicc -o own own.c]
programs:
  own:
    command: ./own
    launches: 1
    figures:
      rate: {pattern: 'Rate: (\S+) GF/s', unit: GF/s, better: higher}
"""


def call(command: Iterable[str | Path], environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a command prints; a failure of the test with all of it unless it succeeds."""
    words = list(command)
    done = succeeded(ended(words, env=environment, cwd=cwd, timeout=600))
    return done.stdout


#: the words that make a command one of a user who is not root
ANOTHER = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--")


def of_everybody() -> str | None:
    """A Python like this one that every user may start: the one below a virtual environment may lie in /root."""
    wanted = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    for found in (sys.executable, f"/usr/bin/python{sys.version_info.major}"):
        # the shell: what setpriv itself starts has more rights
        command = [*ANOTHER, "sh", "-c", 'exec "$0" -c "$1"', found, wanted]
        if subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0:
            return found
    return None


INTERPRETER = of_everybody() if os.geteuid() == 0 else sys.executable
AS_USER = ANOTHER if os.geteuid() == 0 and INTERPRETER else ()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as ``make wheel`` makes it: an sdist, a wheel of that, hwloc put into it."""
    folder = tmp_path_factory.mktemp("dist")
    around = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    around.pop("PYTHONPATH", None)
    build = ["uv", "build", "--sdist", "--no-build-isolation", "--python", sys.executable]
    call([*build, "--out-dir", folder / "built", paths.root()], around)
    (source,) = (folder / "built").glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", "--no-index"]
    call([*pip, "--no-build-isolation", "--wheel-dir", folder / "built", source], around)
    (built,) = (folder / "built").glob("*.whl")
    call(["auditwheel", "repair", "--wheel-dir", folder, built], around)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def place(wheel: Path) -> Iterator[Path]:
    """A folder with ``env``, where the wheel is; its dependencies are those of the development environment."""
    with tempfile.TemporaryDirectory(prefix="plumb-wheel-") as name:  # pytest's folders are for their owner alone
        folder = Path(name)
        folder.chmod(0o755)
        install(wheel, folder)
        yield folder


def install(wheel: Path, folder: Path) -> None:
    """Make ``env``, and what a user has beside it."""
    python = folder / "env" / "bin" / "python"
    call([INTERPRETER or sys.executable, "-m", "venv", "--without-pip", folder / "env"])
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install"]
    call([*pip, "--quiet", "--no-deps", "--no-index", wheel])
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "env")}))
    (site / "dependencies.pth").write_text(dependencies(folder))
    program = (BIN / "reframe").read_text()
    (python.parent / "reframe").write_text(re.sub(r"\A.*", f"#!{python}", program))
    (python.parent / "reframe").chmod(0o755)
    for name in ("home", "data"):
        (folder / name).mkdir()
    known = paths.stacks() / "blas"  # its choice takes long
    if known.is_dir():
        shutil.copytree(known, folder / "data" / "stacks" / "blas")


def dependencies(folder: Path) -> str:
    """Where the packages of this environment are; a copy of them where the user may not enter the checkout."""
    packages = sysconfig.get_path("purelib")
    if not AS_USER or subprocess.run([*AS_USER, "test", "-x", packages], check=False, timeout=60).returncode == 0:
        return packages
    unused = shutil.ignore_patterns("ansible*", "playwright*", "mypy*", "__pycache__")
    shutil.copytree(packages, folder / "dependencies", ignore=unused, symlinks=True)
    return str(folder / "dependencies")


def plumb(place: Path, *words: str, cwd: Path | None = None, user: Sequence[str] = AS_USER) -> str:
    """What ``plumb WORDS`` prints with the variables that a new user has, and those that say where packages are."""
    if user:
        call(["chown", "--recursive", "nobody:nogroup", place / "home", place / "data"])
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    own = {"HOME": str(place / "home"), "PLUMB_HOME": str(place / "data"), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return call(
        [*user, place / "env" / "bin" / "plumb", *words], {**kept, **own, "LANG": "C.UTF-8"}, cwd or place / "home"
    )


@pytest.fixture(scope="module")
def ready(place: Path) -> Path:
    """The same folder, set up with one stack."""
    try:
        said = plumb(place, "setup", "--stack", "mpich", "--no-ceilings")
    except AssertionError:
        log = place / "data" / "stacks" / "mpich.log"
        if log.exists() and re.search(UNREACHABLE, log.read_text()):
            pytest.skip("not run: no package registry can be reached")
        raise
    assert "next: plumb campaign" in said
    return place


def test_it_has_what_git_has_and_the_tools(wheel):
    committed = call(["git", "-C", paths.root(), "ls-files", "--", "plumbline", *SUITE, *FILES]).splitlines()
    expected = {name if name.startswith("plumbline/") else f"plumbline/suite/{name}" for name in committed}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    own = {name for name in names if not re.match(r"plumbline_hpc[-.][^/]*(info|libs)/", name)}
    assert own == expected | {f"plumbline/tools/{name}" for name in TOOLS}
    assert "manylinux" in wheel.name
    assert "-py3-none-" in wheel.name


def test_plumb_bind_has_its_hwloc_and_what_is_preloaded_has_nothing(place):
    (package,) = place.glob("env/lib/python*/site-packages/plumbline")
    for name in TOOLS:
        dynamic = call(["readelf", "--dynamic", package / "tools" / name])
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        foreign = [library for library in needed if not library.startswith(("libc.so", "libm.so", "ld-linux"))]
        if name == "bin/plumb-bind":
            (hwloc,) = foreign
            found = re.search(rf"{re.escape(hwloc)} => (\S+)", call(["ldd", package / "tools" / name]))
            assert found
            assert Path(found[1]).resolve().is_relative_to(package.with_name("plumbline_hpc.libs"))
        else:
            assert foreign == []
            assert "PATH)" not in dynamic


def test_what_is_installed_says_where_it_is_and_asks_its_own_plumb_bind(place):
    assert re.fullmatch(rf"plumb \S+ \(wheel in {place}/env/lib/\S+/plumbline\)\n", plumb(place, "--version"))
    assert "rank 0.0" in plumb(place, "topology", "--placement", "core")


def test_each_library_in_it_has_its_licence_there(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    inside = {re.sub(r".*/lib(\w+)-.*", r"\1", name) for name in names if ".libs/" in name and not name.endswith("/")}
    assert "hwloc" in inside
    assert inside <= set(LICENCES)
    texts = {name.rpartition("/")[2] for name in names if re.search(r"\.dist-info/licenses/", name)}
    assert {LICENCES[name] for name in inside} <= texts


@pytest.mark.long
def test_wheels_of_both_architectures_need_glibc_2_28_and_hide_their_unwinder(tmp_path):
    subprocess.run(["make", "-C", paths.root(), "wheels"], check=True, timeout=1700)
    wheels = sorted((paths.build() / "dist").glob("*.whl"))
    assert [file.stem.partition("manylinux_")[2].partition("_")[2][3:] for file in wheels] == ["aarch64", "x86_64"]
    for file in wheels:
        with zipfile.ZipFile(file) as packed:
            packed.extractall(tmp_path / file.stem)
        tools = tmp_path / file.stem / "plumbline" / "tools"
        for name in TOOLS:
            versions = re.findall(r"GLIBC_2\.(\d+)", call(["readelf", "--version-info", tools / name]))
            assert max(map(int, versions)) <= 28, name
            assert "hwloc" not in call(["readelf", "--dynamic", tools / name])
        seen = call(["nm", "--dynamic", "--defined-only", tools / "lib" / "libplumbwitness.so"])
        assert " T MPI_Init" in seen
        assert not re.search("unw", seen, re.IGNORECASE)


@pytest.mark.long
def test_it_is_used_without_root(ready):
    if os.geteuid() == 0 and INTERPRETER is None:
        pytest.skip("not run without root: no Python of this version that every user may start")
    assert (ready / "data" / "stacks" / "mpich" / "manifest.json").stat().st_uid != 0


@pytest.mark.long
def test_set_up_again_changes_nothing(ready):
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in ready.rglob("*") if "__pycache__" not in path.parts}

    before = files()
    said = plumb(ready, "setup", "--stack", "mpich", "--no-ceilings")
    assert "mpich: up to date\nsite local: unchanged" in said
    after = files()
    assert [path for path in before | after if before.get(path) != after.get(path) and path.is_file()] == []


@pytest.mark.long
def test_labs_have_the_machines_of_the_documents(ready):
    assert plumb(ready, "lab", "T4", "--recorded").splitlines()[-1].startswith("true without measuring")
    assert "49237" in plumb(ready, "lab", "R7", "--recorded")


@pytest.mark.long
def test_a_program_of_ones_own_is_measured_and_the_package_stays(ready):
    (package,) = ready.glob("env/lib/python*/site-packages/plumbline")
    before = sorted(package.rglob("*"))
    code = ready / "home" / "own"
    code.mkdir()
    shutil.copy(PROGRAMS / "own_program.c", code / "own.c")
    (code / "plumb.yaml").write_text(DESCRIPTION)
    said = plumb(ready, "run", cwd=code)
    assert "1 variant, 1 verified, 1 launch " in said
    assert "own" in plumb(ready, "list")
    assert (ready / "data" / "results" / "local").is_dir()
    assert sorted(path.name for path in (ready / "home").iterdir() if not path.name.startswith(".")) == ["own"]
    assert [path for path in sorted(package.rglob("*")) if path not in before and "__pycache__" not in path.parts] == []


@pytest.fixture(scope="module")
def merged(ready: Path, wheel: Path) -> Path:
    """The repository of a code with the pipeline of ``plumb ci gitlab``, and a branch ``change`` that is slower."""
    top = ready / "home" / "merged"
    code = top / "code"
    code.mkdir(parents=True)
    shutil.copy(PROGRAMS / "own_program.c", code / "own.c")
    (code / "plumb.yaml").write_text(re.sub("rate: .*", "time: {wall: true}", DESCRIPTION))
    (top / ".gitlab-ci.yml").write_text("include: [{local: .gitlab/plumbline.yml}]\n")
    own_code.git(top, "init", "--quiet", "--initial-branch=main")
    own_code.git(top, "remote", "add", "origin", "ssh://git@example.org/us/code.git")
    places = ("--install", str(wheel), "--home", str(ready / "data"), "--results", str(ready / "nightly"))
    wishes = ("--tags", "hpc", "--stack", "mpich", "--minutes", "2", "--comment", "--pages")
    said = plumb(ready, "ci", "gitlab", *places, *wishes, "--checkout", str(top), cwd=code, user=())
    assert "Add to .gitlab-ci.yml" in said
    own_code.git(top, "add", ".")
    own_code.git(top, "commit", "--quiet", "-m", "one")
    own_code.git(top, "switch", "--quiet", "--create", "change")
    (code / "own.c").write_text((PROGRAMS / "own_program.c").read_text().replace("PER_SEC / 4", "PER_SEC / 2"))
    own_code.git(top, "commit", "--quiet", "-am", "twice the work")
    return top


def pipeline(runner: Path, merged: Path, branch: str, given: dict[str, str]) -> tuple[str, Path]:
    """What the jobs of the pipeline print on ``branch``, by another's runner, and where their artefacts are."""
    own_code.git(merged, "switch", "--quiet", branch)
    ready = merged.parents[1]
    variables = [word for name, value in given.items() for word in ("--variable", f"{name}={value}")]
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    kept.setdefault("PIP_CACHE_DIR", call([sys.executable, "-m", "pip", "cache", "dir"]).strip())
    path = f"{Path(sys.executable).resolve().parent}:/usr/local/bin:/usr/bin:/bin"
    around = {"PATH": path, "HOME": str(ready / "home")}
    command = [runner, "--no-color", "--force-shell-executor", "--home", ready / "runner", *variables]
    done = ended(command, cwd=merged, env={**kept, **around}, timeout=600)
    said = done.stdout + done.stderr
    if re.search(UNREACHABLE, said):
        pytest.skip("not run: no package registry can be reached")
    return said, merged / ".gitlab-ci-local" / "artifacts"


@pytest.mark.long
def test_a_merge_request_of_ones_own_code_gets_its_gate_and_comment(runner, merged, host):
    """The job of a merge request: install, set up, gate of a slower change, comment."""
    given = gitlab_runner.variables("merge_request_event", own_code.git(merged, "rev-parse", "main"), host)
    gitlab_runner.for_the_comment(merged.parents[1] / "runner", "not-for-eyes")
    said, artefacts = pipeline(runner, merged, "change", given)
    made = artefacts / "plumb-gate" / "plumb-ci"
    assert {file.name for file in made.iterdir()} >= {"gate.json", "gate.xml", "gate.md", "gate.html", "work"}, said
    (judged,) = json.loads((made / "gate.json").read_text())["series"]
    assert judged["series"].startswith("own %placement=core")
    if judged["verdict"] == "INVALID":  # a machine that is busy may make too few pairs in that time
        assert re.search(TOO_BUSY, judged["reason"])
    else:
        assert judged["ratio"] > 1.3
    job = {"FAIL": "FAIL 1", "INCONCLUSIVE": "WARN 2", "INVALID": "FAIL 3"}[judged["verdict"]]
    assert re.search(rf"^plumb-gate +finished in [0-9.]+ \w+ +{job}", said, re.MULTILINE), said
    (posted,) = [body["body"] for method, _, _, body in host.asked if method == "POST"]
    assert posted.endswith((made / "gate.md").read_text())
    assert "not-for-eyes" not in said


@pytest.mark.long
def test_the_nightly_pipeline_of_ones_own_code_measures_it_and_makes_its_pages(runner, merged):
    """The jobs of a schedule: install, set up, run, history, and the pages of all campaigns."""
    said, artefacts = pipeline(runner, merged, "main", {"CI_PIPELINE_SOURCE": "schedule"})
    measured = (artefacts / "plumb-nightly" / "plumb-ci" / "campaign.txt").read_text()
    assert "1 variant, 1 verified, 1 launch " in measured, said
    assert list((merged.parents[1] / "nightly").rglob("*.jsonl"))
    pages = artefacts / "pages" / "public"
    (page,) = pages.glob("systems/local/tests/own*.html")
    assert "own %placement=core" in json.dumps(published.shown(page))
    assert (pages / "index.html").is_file()
    for job in ("plumb-nightly", "pages"):
        assert re.search(rf"^{job} +finished in [0-9.]+ m?\w+ *$", said, re.MULTILINE), said


@pytest.mark.long
def test_the_tutorial_for_ones_own_code_is_true(ready):
    """Its commands, with less time for a gate: a verdict is right, or there is none on a machine that is busy."""
    text = (paths.root() / "docs" / "tutorial-code.md").read_text()
    steps = re.findall(r"<!-- step: (\w+) -->\n```sh\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in steps] == ["code", "run", "harmless", "slower", "ci"]
    script = "".join(f"echo step {name}\n{commands}" for name, commands in steps)
    script = script.replace("--minutes 5", "--minutes 0.7")
    folder = ready / "home" / "tutorial"
    folder.mkdir()
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    own = {"HOME": str(ready / "home"), "PLUMB_HOME": str(ready / "data"), "LANG": "C.UTF-8", **names}
    said = call(["bash", "-euc", script], {**own, "PATH": f"{ready}/env/bin:/usr/local/bin:/usr/bin:/bin"}, folder)
    shown = dict(re.findall(r"^step (\w+)\n(.*?)(?=^step |\Z)", said, re.DOTALL | re.MULTILINE))
    assert "plumb.yaml: in order" in shown["code"]
    assert "3 variants, 3 verified, 9 launches " in shown["run"]
    for name, right in {"harmless": "PASS", "slower": "FAIL"}.items():
        verdicts = re.findall(r"^heat \w+ +rate +(\w+) ", shown[name], re.MULTILINE)
        assert len(verdicts) == 2
        busy = re.search(rf"^gate: INVALID: .*({TOO_BUSY})", shown[name], re.MULTILINE)
        assert set(verdicts) <= {right, "INCONCLUSIVE", *(["INVALID"] if busy else [])}, shown[name]
    assert (folder / "heat" / ".gitlab" / "plumbline.yml").is_file()
    shown_file = re.search(r"<!-- file: (\S+) -->\n```yaml\n(.*?)```", text, re.DOTALL)
    assert shown_file
    assert shown_file[2] == (paths.root() / shown_file[1]).read_text()


@pytest.mark.long
def test_the_suite_itself_is_whole(ready):
    said = plumb(ready, "campaign", "--test", "suite_integrity")
    assert "OK   suite_integrity" in said
