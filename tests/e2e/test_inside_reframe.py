"""The suite in a ReFrame configuration of another house: what it adds, what it leaves alone, where figures arrive."""

import contextlib
import re
import sqlite3
import subprocess
import sys

import pytest
import stored
from packaging.specifiers import SpecifierSet
from test_reframe import TESTS, activated, ran, reframe

from plumbline.base import paths

pytestmark = pytest.mark.e2e
THEIRS = paths.root() / "tests/data/reframe/daintlike.py"
OURS = paths.root() / "site-configs/settings.py"
EXTENDED = f"""
import sys

sys.path.append({str(paths.root())!r})
from plumbline.reframe import extend

stacks = {{"prgenv-gnu": "openmpi", "builtin": "mpich"}}
site_configuration = extend(site_configuration, "daintlike", stacks, site="local", partitions={{"normal": "default"}})
"""


@pytest.fixture
def theirs(tmp_path):
    """The variables of a ReFrame that somebody else installed, and nothing of ``activate``."""
    variables = activated(tmp_path, TMPDIR=str(tmp_path))
    del variables["RFM_CONFIG_FILES"]
    return variables


@pytest.fixture
def extended(tmp_path):
    """The configuration with the lines of the documentation below it."""
    file = tmp_path / "extended.py"
    file.write_text(THEIRS.read_text() + EXTENDED)
    return file


@pytest.mark.parametrize("action", ["-l", "-r"])
def test_a_system_without_stacks_is_an_error_with_the_cure(theirs, action):
    status, output = reframe("-C", str(THEIRS), action, **theirs)
    assert status == 1
    assert output.splitlines()[-1] == (
        "plumb: no environment of ReFrame's system 'daintlike' has a stack (docs/inside-reframe.md): "
        f"add plumbline.reframe.extend to its configuration, or run with -C {OURS} --system local"
    )


ABSENT = ("msgspec", "raise ModuleNotFoundError(\"No module named 'msgspec'\")", "No module named 'msgspec'")
OLDER = ("sitecustomize", "import reframe; del reframe.RegressionTestPlugin", "module 'reframe' has no attribute")


@pytest.mark.parametrize(
    ("words", "module", "text", "message"),
    [(["-C", str(THEIRS)], *ABSENT), (["-C", str(OURS)], *ABSENT), (["-C", str(OURS), "--system", "local"], *OLDER)],
)
def test_a_python_that_cannot_load_the_suite_is_an_error_with_the_cure(theirs, tmp_path, words, module, text, message):
    (tmp_path / f"{module}.py").write_text(f"{text}\n")
    status, output = reframe(*words, "-r", tests=TESTS / "osu.py", **theirs, PYTHONPATH=str(tmp_path))
    assert status == 1
    line = f"plumb: the Python of this ReFrame cannot load the suite: {message}"
    assert output.splitlines()[-1].startswith(line)


def test_an_environment_that_does_not_exist_is_named(tmp_path):
    status, output = reframe("-r", "-p", "opnmpi", tests=TESTS / "osu.py", **activated(tmp_path))
    assert (status, output.splitlines()[-1].partition(": did")[2]) == (1, " you mean 'openmpi'?")


def test_parameters_are_chosen_on_the_command_line(tmp_path):
    words = ["-l", "-n", "osu_barrier", "-P", "placement=core,smt"]
    _, output = reframe(*words, tests=TESTS / "osu.py", **activated(tmp_path))
    assert "osu_barrier %placement=core" in output
    assert "Found 2 check(s)" in output


def test_their_system_runs_our_tests_and_its_logs_have_our_records(theirs, extended, tmp_path, host):
    address = f"http://127.0.0.1:{host.server_port}/reframe/_doc"
    database = tmp_path / "results.db"
    storage = {"RFM_ENABLE_RESULTS_STORAGE": "1", "RFM_SQLITE_DB_FILE": str(database)}
    options = ["-C", str(extended), "-r", "-n", "osu_barrier.*core$", "-S", "launches=2"]
    status, output = reframe(*options, tests=TESTS / "osu.py", **theirs, **storage, ELASTIC=address)
    assert status == 0, output
    run, total, failures, skipped = ran(output)
    assert (run, failures, skipped) == (total, 0, 0)
    assert "@daintlike:normal+prgenv-gnu" in output
    assert "@daintlike:login" not in output

    records = {record["id"]: record for record in stored.sound(tmp_path / "results")}
    assert {record["stack"]["name"] for record in records.values()} == {"openmpi", "mpich"}
    sent = {document["check_record_id"]: document for _, _, _, document in host.asked}
    assert sent.keys() == records.keys()
    for ident, record in records.items():
        document, figure = sent[ident], record["figures"][0]
        name = figure["name"]
        assert document["check_system"] == "daintlike"
        assert document["check_record_verified"] is True
        assert document["check_record_verdict"] == record["verdict"]
        assert document["check_record_disturbed"] == sum(bool(one.get("disturbed")) for one in record["launches"])
        assert document["check_record_plan"].count(";") == len(record["plan"]["ranks"]) - 1
        interval = [min(figure["samples"]), max(figure["samples"])]
        assert document["check_record_figures"][name] == {"interval": interval, "reference": None}
        assert document[f"check_perf_{name}_value"] == figure["value"]
        lines = (tmp_path / "reframe/perflogs/daintlike").glob("*.log")
        (line,) = (line for file in lines for line in file.read_text().splitlines() if ident in line)
        assert line.split("|")[:4] == ["pass", ident, "true", record["verdict"]]
    with contextlib.closing(sqlite3.connect(database)) as connection:
        (session,) = connection.execute("SELECT json_blob FROM sessions").fetchone()
    assert all(ident in str(session) for ident in records)


@pytest.mark.parametrize("files", [(OURS, THEIRS), (THEIRS, OURS)])
def test_two_configurations_in_either_order_give_our_system_their_logs(theirs, tmp_path, files):
    words = [word for file in files for word in ("-C", str(file))]
    words += ["--system", "local", "-r", "-p", "openmpi", "-n", "osu_barrier.*core$", "-S", "launches=1"]
    status, output = reframe(*words, tests=TESTS / "osu.py", **theirs)
    assert status == 0, output
    (log,) = (tmp_path / "reframe/perflogs/local").glob("*.log")
    assert log.read_text().startswith("result|record_id|record_verified|")


def test_a_mode_selects_and_the_prefix_moves_log_and_perflog(tmp_path):
    prefix = tmp_path / "moved"
    options = ["--mode", "quick", "--prefix", str(prefix), "-n", "osu_barrier", "-S", "launches=1"]
    status, output = reframe("-r", *options, tests=TESTS / "osu.py", **activated(tmp_path))
    assert (status, set(re.findall(r"osu_barrier %placement=(\S+)", output))) == (0, {"core"}), output
    assert (prefix / "output/reframe.log").stat().st_size > 0
    (log,) = (prefix / "perflogs/local/default").glob("osu_barrier*.log")
    assert "|record_id|" in log.read_text()


@pytest.mark.long
def test_every_version_of_the_registry_runs_the_suite(theirs, extended, tmp_path, subtests):
    """Those that ``pyproject.toml`` allows, each with the packages that the checkout has."""
    pip = [sys.executable, "-m", "pip"]
    listed = subprocess.run([*pip, "index", "versions", "reframe-hpc"], capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no package registry")
    versions = re.search("Available versions: (.*)", listed.stdout)[1].split(", ")
    allowed = re.search(r'reframe-hpc\[.*?\]([^"]+)', (paths.root() / "pyproject.toml").read_text())[1]
    for version in SpecifierSet(allowed).filter(versions):
        place = tmp_path / version
        command = [*pip, "install", "--no-deps", "--target", str(place), f"reframe-hpc=={version}"]
        subprocess.run(command, capture_output=True, check=True)
        options = ["-C", str(extended), "-P", "placement=core", "-n", "osu_barrier", "-S", "launches=1"]
        with subtests.test(version):
            status, output = reframe("-r", *options, **theirs, PYTHONPATH=str(place))
            assert f"version:           {version}" in output
            assert (status, *ran(output)[:3]) == (0, 2, 2, 0), output
            status, output = reframe("-C", str(THEIRS), "-r", **theirs, PYTHONPATH=str(place))
            assert (status, output.splitlines()[-1][:20]) == (1, "plumb: no environmen")
