"""ReFrame over the suite: what loads, what is skipped and why, and that nothing vanishes silently."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import forked_reframe
import processes
import pytest
import stored
from processes import ended

from plumbline.base import paths
from plumbline.host import binder, machine
from plumbline.measure.reframe import cases, integrity

pytestmark = pytest.mark.e2e
TESTS = paths.root() / "reframe-tests"
TOPOLOGIES = paths.root() / "tests/data/topologies"


def reframe(*options, tests=TESTS, **environment):
    """Exit status and output of ReFrame over the suite, or a file of it, without the variables that activate sets."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("RFM_", "PLUMB_"))}
    words, around = ["-c", str(tests), "--nocolor", *options], {**clean, **environment}
    if "PYTHONPATH" not in environment:
        with tempfile.TemporaryDirectory() as folder:
            ended = forked_reframe.run(*words, environment=around, folder=Path(folder))
            return ended.returncode, ended.stdout + Path(folder, "reframe.out.errors").read_text(encoding="utf-8")
    program = str(paths.root() / "tests/support/installed_reframe.py")
    answer = subprocess.run(
        [sys.executable, program, *words], env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False, timeout=300, cwd=paths.root(),
    )  # fmt: skip
    return answer.returncode, answer.stdout


def activated(tmp_path, **changes):
    """The variables of activate, with folders of this test."""
    settings = str(paths.root() / "site-configs" / "settings.py")
    own = {"PLUMB_RESULTS": str(tmp_path / "results"), "RFM_PREFIX": str(tmp_path / "reframe")}
    return {**own, "RFM_CONFIG_FILES": settings, **changes}


def ran(output):
    """(run, total, failures, skipped) of ReFrame's closing line."""
    found = re.search(r"Ran (\d+)/(\d+) test case.*\((\d+) failure.* (\d+) skipped", output)
    assert found, output
    return tuple(int(number) for number in found.groups())


@pytest.mark.parametrize("action", ["-r", "-l"])
def test_without_activate_reframe_ends_with_the_cure(tmp_path, action):
    status, output = reframe(action, "-t", "quick", RFM_PREFIX=str(tmp_path))
    assert status == 1
    sites = paths.root() / "site-configs"
    line = f"plumb: no site is configured for this host ({sites}): run 'make setup', then '. ./activate'"
    assert output.splitlines()[-1] == line


def test_a_foreign_reframe_without_the_package_does_not_drop_the_tests(tmp_path):
    """Hide the installed package, as a ReFrame from elsewhere would not have it.

    Sources are not read for each test that is loaded: ReFrame does that to place a warning, nearly half of the time
    that loading the suite took.
    """
    hide, calls = tmp_path / "hide", tmp_path / "calls"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        f"import sys\nsys.path[:] = [p for p in sys.path if p != {str(paths.root())!r}]\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
        "import inspect\nbefore = inspect.stack\n\ndef stack(*options):\n"
        f"    print(file=open({str(calls)!r}, 'a'))\n    return before(*options)\n\ninspect.stack = stack\n"
    )
    probe = ended([sys.executable, "-c", "import plumbline"], cwd=tmp_path, env={"PYTHONPATH": str(hide)})
    assert probe.returncode != 0, "the package is still found: this test tests nothing"
    _, output = reframe("-l", **activated(tmp_path, PYTHONPATH=str(hide)))
    assert "skipping test file" not in output
    assert int(re.search(r"Found (\d+) check", output)[1]) >= 15
    assert 1 <= len(calls.read_text()) <= 5  # for ReFrame's own classes


def test_with_no_site_reframe_ends_with_the_cure(tmp_path):
    (tmp_path / "sites").mkdir()
    shutil.copy(paths.root() / "site-configs" / "settings.py", tmp_path / "sites")
    settings = str(tmp_path / "sites" / "settings.py")
    status, output = reframe(
        "-r", "-t", "quick", **activated(tmp_path, PLUMB_SITES=str(tmp_path / "sites"), RFM_CONFIG_FILES=settings)
    )
    assert (status, "plumb: no site is configured for this host" in output) == (1, True)


def test_figures_are_shown_and_recorded(tmp_path):
    words = ("-vvvvvv", "-r", "-n", "osu_barrier", "-t", "quick", "-S", "launches=1")
    status, output = reframe(*words, tests=TESTS / "osu.py", **activated(tmp_path))
    assert status == 0, output
    # a job on this host is waited for, not polled ten times a second beside its ranks: once for each that has ended
    assert output.count("[P] sleep_time=") <= 2 * len(re.findall(r"spawned local process", output))
    assert len(re.findall(r"P: time: [0-9.]+ us", output)) == 3
    records = stored.sound(tmp_path / "results")
    assert {record["stack"]["name"] for record in records} == {"openmpi", "mpich", "intelmpi"}
    assert all(record["verified"] and len(record["launches"]) == 1 for record in records)


def test_what_the_machine_cannot_hold_is_skipped_with_the_shortage(tmp_path):
    """Two nodes on a site of one: no machine that runs this test alone can hold it."""
    _, output = reframe("-r", "-n", "osu_pair.*placement=pair:node", tests=TESTS / "osu.py", **activated(tmp_path))
    run, total, _, skipped = ran(output)
    assert (run, total) == (0, skipped)
    assert "[2 nodes asked, the partition offers 1]" in output


def test_on_one_core_no_test_vanishes(tmp_path):
    """ReFrame drops a test whose parameter has no values, with a warning only."""
    sites = tmp_path / "sites"
    shutil.copytree(paths.sites() / "local", sites / "local")
    (topology,) = (sites / "local/topology").iterdir()
    topology.write_text(binder.ask(["--topology", "package:1 core:1 pu:1", "--export-topology", "-"]))
    _, output = reframe("-l", **activated(tmp_path, PLUMB_SITES=str(sites)))
    assert "skipping" not in output
    expected = set((TESTS / integrity.EXPECTED).read_text().split())
    assert set(re.findall(r"^- (\w+)", output, re.MULTILINE)) == expected


@pytest.fixture
def suite(tmp_path):
    """A copy of some of the tests to spoil: all of them take seconds to load."""
    folder = tmp_path / "reframe-tests"
    folder.mkdir()
    files = [shutil.copy(TESTS / name, folder) for name in ("__init__.py", "placements.py", "osu.py", "stream.py")]
    classes = {name for file in files for name in re.findall(r"^class (\w+)", Path(file).read_text(), re.MULTILINE)}
    expected = classes & set((TESTS / integrity.EXPECTED).read_text().split())
    (folder / integrity.EXPECTED).write_text("".join(f"{name}\n" for name in sorted(expected)))
    return folder


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """The variants of this site, loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in activated(tmp_path_factory.mktemp("described")).items():
            patch.setenv(name, value)
        return integrity.describe(TESTS, "local")


@pytest.fixture
def configured(monkeypatch, tmp_path):
    for name, value in activated(tmp_path).items():
        monkeypatch.setenv(name, value)


def test_the_suite_is_whole(described, monkeypatch):
    monkeypatch.setattr(integrity, "describe", {TESTS: described}.get)
    assert integrity.faults(TESTS, "local") == []


def test_a_test_file_that_does_not_load_is_a_fault(configured, suite):
    (suite / "osu.py").write_text("import no_such_module\n" + (suite / "osu.py").read_text())
    found = integrity.faults(suite, "local")
    dropped = set(re.findall(r"^class (osu_\w+)", (suite / "osu.py").read_text(), re.MULTILINE))
    assert "osu_pair" in dropped
    assert {fault.split()[1] for fault in found} == dropped
    assert all("was dropped" in fault for fault in found)


def test_a_test_nobody_expects_is_a_fault(configured, suite):
    names = (suite / "expected.txt").read_text().replace("osu_barrier\n", "")
    (suite / "expected.txt").write_text(names)
    found = integrity.faults(suite, "local")
    assert len(found) == 1
    assert "osu_barrier is not in" in found[0]


def test_a_test_that_is_written_as_no_class_is_a_fault(configured, suite):
    """Selections find tests by the classes that are written in a file."""
    with (suite / "osu.py").open("a") as file:
        file.write("\nfrom reframe.core.meta import make_test\n")
        file.write('rfm.simple_test(make_test("osu_made", (osu_barrier,), {}))\n')
    with (suite / integrity.EXPECTED).open("a") as file:
        file.write("osu_made\n")
    assert integrity.faults(suite, "local") == ["test osu_made is not a class of a file: no selection would load it"]


def test_placements_that_never_differ_are_a_fault(configured, suite):
    """``scatter`` places one rank as ``compact`` does, at every number of threads."""
    text = (suite / "stream.py").read_text()
    (suite / "stream.py").write_text(text.replace('"compact", "spread"', '"compact", "scatter"'))
    (found,) = integrity.faults(suite, "local")
    assert found.startswith("test stream_threads: placements compact and scatter are equal on every stored machine")


def test_stream_arms_are_distinct_on_every_stored_topology_with_several_packages(described):
    stream = [test for test in described if test["@class"] == "stream_threads"]
    assert {test["placement"] for test in stream} == {"none", "compact", "spread"}
    stored = [file for file in TOPOLOGIES.rglob("*.xml") if len(machine.load(file).packages) > 1]
    machines = [*integrity.two_packages(), *map(str, stored)]
    assert {"asymmetric-cgroup.xml", "ranger-4x4.xml", "gpu4-uneven.xml"} <= {file.name for file in stored}
    assert [one for one in machines if integrity.equal_arms(stream, [one])] == []


@pytest.mark.parametrize("pattern", [
    *("osu_barrier", "osu_pair.*(latency|bw)|stream_threads", "osu(_pair|_barrier).*core", "(pi|heat1d)"),
    *("pi?_?sum", "[ps]i_sum", r"sharing\_pair%placement=pair:l3$", ".*triad", "j"),
])  # fmt: skip
def test_a_selection_loads_the_files_that_have_its_tests(described, pattern):
    needed = {test["@file"] for test in described if re.match(f"(?:{pattern})", test["name"].replace(" ", ""))}
    assert needed
    assert needed <= {str(file) for chosen in cases.files(pattern) for file in (chosen, *chosen.glob("*.py"))}


def test_a_selection_by_names_loads_no_other_file(described):
    for name in ("osu_barrier", "pi_sum.*placement=core", "stream_(threads|numa)"):
        assert {str(file) for file in cases.files(name)} == {
            test["@file"] for test in described if re.match(name, test["name"].replace(" ", ""))
        }
    assert cases.files(None) == [TESTS]


def test_of_equal_variants_that_of_the_quick_campaign_comes_first(described):
    """Only the first is measured: another one in full campaigns would end the history of the quick one."""
    tests = {}
    for test in described:
        tests.setdefault(test["@class"], []).append(test)
    late = []
    for name, variants in tests.items():
        order = list(dict.fromkeys(test["placement"] for test in variants if "placement" in test))
        groups = [item for item in order if (placement := binder.placement(item)).bound and not placement.pair]
        quick = {test["placement"] for test in variants if "quick" in test["tags"] and "placement" in test}
        quick &= set(groups)
        if set(groups[: len(quick)]) != quick:
            late.append(name)
    assert late == []


def test_a_missing_reference_file_is_a_fault(described, tmp_path, monkeypatch):
    monkeypatch.setattr(integrity, "describe", {TESTS: described}.get)
    shutil.copytree(paths.sites(), tmp_path / "sites")
    (tmp_path / "sites" / "local" / "references" / "imb.yaml").unlink()
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    found = integrity.faults(TESTS, "local")
    assert len(found) == 1
    assert "reference file is missing" in found[0]
    assert "imb.yaml" in found[0]


@pytest.mark.parametrize("signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_interrupting_a_campaign_keeps_what_had_finished_and_leaves_no_process(tmp_path, signum):
    environment = {**os.environ, "PLUMB_RESULTS": str(tmp_path / "results")}
    command = [paths.program("plumb"), "campaign", "--profile", "quick", "--test", "osu_pair"]
    command += ["--", "-S", "launches=1", "-p", "mpich"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        # the stage folder has the campaign's name, and each rank's HOME is below it
        campaign = re.match(r"campaign (\S+): ", child.stdout.readline())[1]
        for line in child.stdout:
            if " OK " in line:
                break
        rank = re.compile(r"\S+/bin/python -I \S+/osu_\w+\.py")
        processes.wait_until(
            lambda: any(map(rank.match, processes.carrying(campaign))), "a launch of the next variant", of=child
        )
        child.send_signal(signum)
        rest, _ = child.communicate(timeout=120)
    assert child.returncode == 130, rest
    assert "interrupted" in rest
    processes.wait_gone(campaign)
    records = stored.sound(tmp_path / "results")
    # a case before the one that was OK may have reached its time limit on a busy machine
    assert any(record["state"] == "complete" and record["verified"] for record in records)


@pytest.mark.parametrize(("words", "variables", "said"), [
    (["--", "-n", "no_such_test"], {}, r"no test ran: none was selected.*--profile full selects among all tests\n$"),
    ([], {"PLUMB_STACKS": "stacks"}, r"no test ran: site .* is not installed \("),
], ids=["selection", "stack"])  # fmt: skip
def test_a_campaign_of_nothing_is_no_success(tmp_path, words, variables, said):
    places = {name: str(tmp_path / folder) for name, folder in {"PLUMB_RESULTS": "results", **variables}.items()}
    answer = ended([paths.program("plumb"), "campaign", *words], env={**os.environ, **places}, timeout=60)
    assert answer.returncode == 2, answer
    assert re.search(said, answer.stderr, re.DOTALL), answer.stderr
