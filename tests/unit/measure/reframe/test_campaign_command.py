"""``plumb campaign`` around ReFrame: how it ends when ReFrame is interrupted or runs nothing."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import processes
import pytest
import samples
from samples import record

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Site
from plumbline.measure.reframe import campaign, cases
from plumbline.records import outcome, query, store
from plumbline.records.model import convert

#: plumb with another bin folder beside its Python, where a program stands in for ReFrame
PLUMB = "import sys; sys.executable = sys.argv.pop(1); from plumbline.commands import cli; sys.exit(cli.main())"
#: more than a pipe holds: what comes after it in a script begins when plumb reads
TALK = "yes $(printf '%01000d' 0) | head -n 2000"
#: ReFrame while it loads the tests; an interrupt ends it as it ends Python
LOADING = f'#!/bin/sh\n{TALK}\necho yes >"$0.started"\nexec sleep 600\n'


@pytest.fixture
def reframe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-in for ReFrame belongs; no site claims this host, so that no node is asked for."""
    for name in ("sites", "results", "build", "bin"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    return tmp_path / "bin" / "reframe"


#: ReFrame while a case runs: it ends its jobs when it is told to end. A job that is no `sleep` yet would lose SIGTERM,
#: which the shell's trap takes there
RUNNING = """#!/bin/sh
echo "$RFM_STAGE_DIR" >"$0.started"
trap 'echo ended >"$0.ended"; kill -KILL $!; exit 1' TERM
sleep 600 &
echo $! >"$0.job"
wait
"""


def start(reframe: Path, text: str, *words: str) -> subprocess.Popen[str]:
    reframe.write_text(text, encoding="utf-8")
    reframe.chmod(0o755)
    command = [sys.executable, "-c", PLUMB, str(reframe.with_name("python")), "campaign", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_test_that_the_suite_lacks_is_answered_by_the_most_similar_one(reframe):
    """Before ReFrame is started, which takes seconds and names nothing."""
    with pytest.raises(PlumbError, match="no test begins with 'straem_numa'") as caught:
        cases.files("straem_numa")
    assert caught.value.cure == "did you mean 'stream_numa'?"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_the_first_case_is_an_interrupt(reframe, number):
    with start(reframe, LOADING) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("campaign ")
        processes.wait_for(reframe.with_name("reframe.started"), of=child)
        child.send_signal(number)
        output, errors = child.communicate(timeout=120)
    assert child.returncode == 130, output + errors
    assert "interrupted" in output
    assert "no test ran" not in errors


def test_a_reframe_that_runs_nothing_is_an_error_with_its_last_words(reframe):
    with start(reframe, "#!/bin/sh\necho 'reframe: error: no such tag'\nexit 1\n") as child:
        _, errors = child.communicate(timeout=120)
    assert child.returncode == 2
    assert errors.startswith("plumb: no test ran: reframe: error: no such tag")


def test_configuration_files_of_the_user_are_read_after_ours(reframe, monkeypatch, tmp_path):
    """Also those of ``-C``, which alone would replace all others, and with the path from where plumb was started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RFM_CONFIG_FILES", "a.py:/etc/b.py")
    script = '#!/bin/sh\necho "error: $RFM_CONFIG_FILES $@"\nexit 1\n'
    with start(reframe, script, "--", "-C", "c.py", "-J", "x", "--config-file=d.py") as child:
        _, errors = child.communicate(timeout=120)
    files = [paths.suite() / "site-configs/settings.py", *map(tmp_path.joinpath, ("a.py", "/etc/b.py", "c.py", "d.py"))]
    assert f"error: {':'.join(map(str, files))} -c " in errors
    assert " -S profile=quick -J x (" in errors


def test_a_campaign_that_is_killed_ends_reframe_and_its_jobs(reframe):
    with start(reframe, RUNNING) as child:
        job = int(processes.wait_for(reframe.with_name("reframe.job"), of=child))
        child.kill()
        assert processes.wait_for(reframe.with_name("reframe.ended")) == "ended\n"
        child.communicate(timeout=120)
    processes.wait_until(lambda: not processes.runs(job), "the end of the job")


#: ReFrame that goes on until the test says so
ENDS_WHEN_TOLD = """#!/bin/sh
echo yes >"$0.started"
until [ -e "$0.go" ]; do sleep 0.05; done
echo 'reframe: error: the end'
exit 1
"""


def test_a_campaign_that_ignores_the_end_of_its_terminal_goes_on(reframe):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup(1) does
    try:
        child = start(reframe, ENDS_WHEN_TOLD)
    finally:
        signal.signal(signal.SIGHUP, before)
    with child:
        processes.wait_for(reframe.with_name("reframe.started"), of=child)
        child.send_signal(signal.SIGHUP)
        reframe.with_name("reframe.go").touch()
        _, errors = child.communicate(timeout=120)
    assert errors.startswith("plumb: no test ran: reframe: error: the end")


def test_a_second_campaign_in_one_checkout_is_one_line(reframe):
    with start(reframe, RUNNING) as first:
        processes.wait_for(reframe.with_name("reframe.job"), of=first)
        with start(reframe, RUNNING) as second:
            output, errors = second.communicate(timeout=120)
        first.terminate()
        first.communicate(timeout=120)
    assert second.returncode == 2
    assert errors.startswith("plumb: another campaign runs in this checkout (")
    assert "campaign " not in output


def test_each_campaign_has_a_stage_of_its_own_and_the_last_ones_are_kept(reframe):
    stages = []
    mine = reframe.parents[1] / "build" / "reframe" / "stage" / "local"
    mine.mkdir(parents=True)
    for _ in range(campaign.STAGES_KEPT + 2):
        with start(reframe, '#!/bin/sh\necho "$RFM_STAGE_DIR" >"$0.stage"\n') as child:
            child.communicate(timeout=120)
        stages.append(reframe.with_name("reframe.stage").read_text().strip())
    assert len(set(stages)) == len(stages)
    assert len(list(mine.parent.iterdir())) == campaign.STAGES_KEPT + 1
    assert mine.is_dir()
    assert Path(stages[-1]).is_dir()


#: ReFrame whose only case fails: no record is left
FAILING = """#!/bin/sh
cat <<'END'
[     FAIL ] (1/1) osu_barrier %placement=core /66dedcc7 @local:main+mpich
FAILURE INFO for osu_barrier %placement=core (run: 1/1)
  * System partition: local:main
  * Environment: mpich
  * Stage directory: {stage}
  * Reason: job error: [jobid=12] job died
END
exit 1
"""


@pytest.mark.parametrize("submitted", [True, False])
def test_a_failed_case_is_one_line_with_the_reason_before_the_closing_line_and_the_next_step(reframe, submitted):
    stage = reframe.parent / "osu_barrier_66dedcc7"
    if submitted:
        stage.mkdir()
        (stage / "rfm_job.err").touch()
    with start(reframe, FAILING.format(stage=stage)) as child:
        output, errors = child.communicate(timeout=120)
    assert child.returncode == 1, output + errors
    *_, failed, _, closing, _, following = output.splitlines()
    assert failed == "failed osu_barrier %placement=core on mpich (main): job error: [jobid=12] job died"
    assert closing.startswith("0 variants, 0 verified, 0 launches (0 disturbed); 0 skipped, 1 failed, in ")
    own = f"the first failed job's own words: tail {stage}/*.err"
    assert following.startswith("next: " + (own if submitted else "all that ReFrame says of it, "))


#: ReFrame that runs nothing, because a node is drained
SKIPPING = """#!/bin/sh
for case in 1 2; do
    echo "[     SKIP ] ($case/2) osu_barrier %placement=$case /66dedcc$case @local:main+mpich [node n1 is drained]"
done
"""


def test_a_campaign_that_skipped_everything_says_why_its_status_is_1(reframe):
    with start(reframe, SKIPPING) as child:
        output, errors = child.communicate(timeout=120)
    assert child.returncode == 1, output
    assert errors == "no variant was measured: all 2 were skipped, 2 x node n1 is drained\n"
    with start(reframe, FAILING.format(stage=reframe.parent)) as child:
        _, errors = child.communicate(timeout=120)
    assert errors == "1 case failed\n"


def test_where_the_outcome_cannot_be_written_figures_and_failures_are_printed_first(reframe, capsys, monkeypatch):
    store.write(store.session_file("local", "s1"), [convert(record(campaign="c1"))])
    (row, *_), _ = query.records(query.Selection(campaign="c1"))
    log = reframe.parents[1] / "build" / "reframe" / "campaign.out"
    log.parent.mkdir()
    log.write_text("", encoding="utf-8")
    monkeypatch.setattr(outcome, "file", lambda *_: Path("/proc/outcome.json"))
    failed = cases.Case("FAIL", "osu_barrier /66dedcc7 @local:main+mpich", "the disk is full")
    with pytest.raises(PlumbError, match="cannot write the outcome"):
        campaign._report("c1", "quick", 1, [failed], 1.0)
    printed = capsys.readouterr().out
    assert row.id in printed
    assert "failed osu_barrier on mpich (main): " in printed


#: ReFrame that waits for its jobs, in the order in which it began them, however often it is interrupted
WAITING = f"""#!/bin/bash
{TALK}
trap '' INT
for number in 4711 4712; do
    mkdir -p "$RFM_STAGE_DIR/main/$number"
    echo "squeue $number" >"$RFM_STAGE_DIR/main/$number/plumb.job"
done
(exec ssh 600) &
echo $! >"$0.job"
wait
echo yes >"$0.ended"
exit 1
"""


def test_an_interrupt_ends_all_jobs_at_once(reframe, monkeypatch):
    """By the scheduler's command, or by the end of ssh: ReFrame would wait for one after the other."""
    programs = reframe.parent
    (programs / "scancel").write_text('#!/bin/sh\necho "$@" >>"$0.called"\n', encoding="utf-8")
    (programs / "scancel").chmod(0o755)
    (programs / "ssh").symlink_to(str(shutil.which("sleep")))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with start(reframe, WAITING) as child:
        job = int(processes.wait_for(reframe.with_name("reframe.job"), of=child))
        processes.wait_until(lambda: Path(f"/proc/{job}/comm").read_text().strip() == "ssh", "ssh", of=child)
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=120)
    assert child.returncode == 130, output + errors
    assert sorted((programs / "scancel.called").read_text().split()) == ["4711", "4712"]
    assert reframe.with_name("reframe.ended").exists()  # it was not killed: its jobs had ended before
    assert not processes.runs(job)


@pytest.mark.parametrize(("build", "scheduler", "refused"), [
    ("my build", "local", True), ("my'build", "ssh", True), ("my build", "slurm", False), ("build-1", "local", False),
])  # fmt: skip
def test_a_build_folder_with_a_blank_is_named_before_it_is_split(tmp_path, monkeypatch, build, scheduler, refused):
    """ReFrame said only ``permission error: [Errno 13] Permission denied: '/path/my'`` for each case."""
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / build))
    monkeypatch.setattr(campaign.site, "load_all", list)
    part = samples.partition(scheduler=scheduler, hosts=["n1"])
    here = Site(schema=1, name="s", description="", hostnames=[], partitions=[part])
    monkeypatch.setattr(campaign.site, "claiming", lambda _: here)
    monkeypatch.setattr(campaign, "environment_of_reframe", lambda *_: pytest.fail("went on"))
    with pytest.raises(PlumbError if refused else pytest.fail.Exception, match="has a blank" if refused else "went on"):
        campaign.measure(campaign.Tests([], "quick", []))


@pytest.mark.parametrize(("test", "options", "part"), [
    (None, [], None),
    (None, ["-S", "launches=2"], None),
    ("stream", [], outcome.CHOSEN),
    (None, ["-n", "stream"], outcome.CHOSEN),
    (None, ["--exclude=imb"], outcome.CHOSEN),
])  # fmt: skip
def test_chosen_tests_are_no_whole_campaign(monkeypatch, test, options, part):
    begun: list[campaign.Tests] = []
    monkeypatch.setattr(campaign, "measure", lambda tests, nodes, turn: begun.append(tests) or 0)
    campaign.run("quick", test, options)
    assert [tests.part for tests in begun] == [part]
