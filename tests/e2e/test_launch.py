"""The launch driver with real launchers and programs that misbehave: every fault is in the record, in words."""

import os
import re
import signal
import subprocess
from pathlib import Path

import msgspec
import processes
import pytest
import schema_files
import stack_manifest
import stored
from odd_stack import STREAM_OUTPUT

from plumbline import mpi
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host import machine
from plumbline.measure import driver
from plumbline.records import model

pytestmark = pytest.mark.e2e
#: Intel MPI is a relative of MPICH
STACKS = ("openmpi", "mpich", pytest.param("intelmpi", marks=pytest.mark.long))


def run(bench, code, base="mpich", **changes):
    """The record of one launch of ``code`` under the launcher of ``base``."""
    bench.stack(code, base)
    _, records = driver.run([bench.variant(**changes)], bench.folder / "work")
    found = model.document(records[0])
    schema_files.check("record", found)
    return found


@pytest.mark.parametrize("base", STACKS)
def test_a_good_program_is_verified_under_every_launcher(bench, base):
    record = run(bench, STREAM_OUTPUT, base, launches=2)
    assert record["reasons"] == []
    assert record["verified"] is True
    assert record["figures"][0]["samples"] == [20000.0, 20000.0]
    assert record["verdict"] == "unreferenced"
    assert len(record["launches"][0]["ranks"]) == 1


def test_a_folder_that_is_not_ours_stays_and_nothing_is_measured(bench):
    foreign = bench.folder / "work" / "launch-1" / "thesis.tex"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("years of work")
    with pytest.raises(PlumbError, match="not made by Plumbline"):
        run(bench, STREAM_OUTPUT, launches=2)
    assert foreign.read_text() == "years of work"
    assert not list(paths.results().rglob("*.jsonl"))


@pytest.mark.parametrize("base", STACKS)
def test_rates_of_ranks_are_added(bench, base):
    record = run(bench, STREAM_OUTPUT, base, ranks_per_node=2)
    assert record["verified"] is True, record["reasons"]
    assert record["figures"][0]["value"] == 40000.0
    assert sorted(rank["rank"] for rank in record["launches"][0]["ranks"]) == [0, 1]


@pytest.mark.parametrize("base", STACKS)
def test_the_control_may_have_more_ranks_than_cores(bench, base):
    ranks = len(machine.load().cores) + 1
    record = run(bench, STREAM_OUTPUT, base, placement="none", ranks_per_node=ranks)
    assert (record["reasons"], len(record["launches"][0]["ranks"])) == ([], ranks)


@pytest.mark.parametrize("base", STACKS)
def test_a_program_that_binds_itself_elsewhere_is_not_verified(bench, base):
    code = "import os; os.sched_setaffinity(0, {1})\n" + STREAM_OUTPUT
    record = run(bench, code, base, placement="pair:0,1", ranks_per_node=2)
    assert record["verified"] is False
    assert record["figures"] == []
    assert record["verdict"] == "invalid"
    assert any("rank 0" in reason and "CPU" in reason for reason in record["reasons"])


@pytest.mark.parametrize("base", STACKS)
def test_a_rank_that_is_killed_is_missed(bench, base):
    code = "import os,signal; os.kill(os.getpid(), signal.SIGKILL)"
    record = run(bench, code, base)
    assert record["verified"] is False
    assert any("left no witness" in reason for reason in record["reasons"]), record["reasons"]


@pytest.mark.parametrize("base", STACKS)
def test_a_job_that_hangs_is_ended_and_says_so(bench, base, monkeypatch):
    code = "import os,time; open('pid','w').write(str(os.getpid())); time.sleep(600)"
    pid = bench.folder / "work" / "launch-0" / "pid"
    processes.limit_begins_after(monkeypatch, lambda _: processes.wait_asleep(int(processes.wait_for(pid))))
    record = run(bench, code, base, time_limit_s=1)
    assert record["launches"][0]["status"] == "timeout"
    assert any("ended by its time limit of 1 s" in reason for reason in record["reasons"])
    assert any("sleeping" in line for line in record["launches"][0]["waiting"])
    assert not processes.runs(int(pid.read_text()))


def test_output_that_is_no_result_is_no_figure(bench):
    record = run(bench, "print('hello')")
    assert record["verdict"] == "invalid"
    assert record["figures"] == []
    assert "hello" in record["launches"][0]["output_tail"]


def test_a_nul_in_the_output_of_a_failed_launch_does_not_spoil_its_record(bench):
    record = run(bench, "import sys; print('no\\0licence'); sys.exit(7)")
    assert "no\N{REPLACEMENT CHARACTER}licence" in record["launches"][0]["output_tail"]


def test_a_failing_program_is_recorded_with_its_status(bench):
    record = run(bench, "import sys; print('no licence', file=sys.stderr); sys.exit(7)")
    assert any("exit status 7" in reason for reason in record["reasons"])
    assert "no licence" in record["launches"][0]["output_tail"]


def test_arrays_below_the_rule_are_invalid(bench):
    document = bench.stack(STREAM_OUTPUT)
    document["benchmarks"]["stream"]["facts"]["array_elements"] = 1000

    stack_manifest.save(document)
    _, records = driver.run([bench.variant()], bench.folder / "work")
    assert "smaller than 4 x" in records[0].reasons[0]


def test_two_variants_alternate_in_an_order_that_the_seed_repeats(bench):
    bench.stack(STREAM_OUTPUT)
    variants = [bench.variant(name="a", launches=3), bench.variant(name="b", launches=3)]
    file, records = driver.run(variants, bench.folder / "work", seed=1)
    orders = [[launch.order for launch in record.launches] for record in records]
    assert sorted(orders[0] + orders[1]) == list(range(6))
    for pair in range(3):  # each round holds both
        assert {orders[0][pair], orders[1][pair]} == {2 * pair, 2 * pair + 1}
    assert driver.schedule([3, 3], 1) == driver.schedule([3, 3], 1)
    assert driver.schedule([3, 3], 1) != driver.schedule([3, 3], 2)
    assert [item["variant"]["name"] for item in stored.read_file(file)] == ["a", "b"]


@pytest.mark.parametrize(("changes", "message"), [
    ({"placement": "compcat"}, "compcat"),
    ({"ranks_per_node": 100000}, "100000"),
    ({"stack": "nonesuch"}, "stack 'nonesuch' is not installed"),
    ({"benchmark": "linpack"}, "has no benchmark 'linpack'"),
    ({"launches": 0}, "launches"),
])  # fmt: skip
def test_bad_variants_end_in_one_line(bench, changes, message):
    bench.stack(STREAM_OUTPUT)
    with pytest.raises(PlumbError) as caught:
        driver.run([bench.variant(**changes)], bench.folder / "work")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_manifest_with_a_missing_program_is_refused(bench):
    document = bench.stack(STREAM_OUTPUT)
    Path(document["benchmarks"]["stream"]["file"]).unlink()
    with pytest.raises(PlumbError, match="stream is missing"):
        driver.run([bench.variant()], bench.folder / "work")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_launches_that_had_finished(bench, signum):
    """The first launch ends at once, the second would take minutes."""
    code = "import os,time\nif os.path.exists('../second'): "
    code += "open('../pid','w').write(str(os.getpid())); time.sleep(600)\n"
    code += "open('../second','w').close()\n" + STREAM_OUTPUT
    bench.stack(code)
    (bench.folder / "variant.json").write_bytes(msgspec.json.encode(bench.variant(launches=3)))
    work = bench.folder / "work"
    command = [paths.program("plumb"), "launch", str(bench.folder / "variant.json"), "--work", str(work)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ.copy()) as child:
        processes.wait_for(work / "pid", of=child)
        child.send_signal(signum)
        _, stderr = child.communicate(timeout=120)
    assert child.returncode == 128 + signum, stderr
    assert "the launches that had finished are recorded" in stderr
    records = stored.sound()
    assert (records[0]["state"], len(records[0]["launches"])) == ("interrupted", 1)
    assert not processes.runs(int((work / "pid").read_text()))


def test_a_launcher_that_is_gone_is_one_line_and_the_record_says_interrupted(bench, monkeypatch):
    bench.stack(STREAM_OUTPUT)
    monkeypatch.setattr("plumbline.stacks.manifest.check", lambda manifest: None)
    monkeypatch.setattr("plumbline.mpi.Launcher.command", lambda *_, **__: mpi.Command(("/no/such/mpirun",)))
    with pytest.raises(PlumbError, match=r"a launch could not be started: .*/no/such/mpirun"):
        driver.run([bench.variant()], bench.folder / "work")
    records = stored.sound()
    assert (records[0]["state"], records[0]["verdict"]) == ("interrupted", "invalid")


def test_a_launcher_that_binds_behind_the_binders_back_is_found_out(bench):
    """Intel MPI told to pin rank 0 to CPU 0 and rank 1 to CPU 1, against the plan."""
    bench.stack(STREAM_OUTPUT, "intelmpi")
    pins = {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": "0,1"}
    variant = bench.variant(placement="pair:1,0", ranks_per_node=2, environment=pins)
    _, records = driver.run([variant], bench.folder / "work")
    assert records[0].verdict == "invalid"
    reason = records[0].reasons[0]
    assert re.match(r"launch 0: plumb-bind: placement pair:1,0: CPU [01] may not be used", reason), reason
