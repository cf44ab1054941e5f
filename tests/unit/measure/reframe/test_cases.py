"""What a campaign reads in ReFrame's output: the samples are ReFrame 4.10's own words."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from reframe.core.exceptions import SanityError

from plumbline.base.errors import PlumbError
from plumbline.measure.reframe import cases, stage
from plumbline.measure.reframe.cases import Case
from plumbline.measure.reframe.stage import RecordShown

LABEL = "osu_barrier %placement=core /66dedcc7 @local:default+mpich"
FAILURE = """\
--------------------------------------------------------------------------------
FAILURE INFO for osu_barrier %placement=core (run: 1/1)
  * Description: Barrier over all ranks of a placement (experiments D5, R7).
  * System partition: local:default
  * Environment: mpich
  * Test file: /suite/reframe-tests/osu.py
  * Stage directory: /stage/osu_barrier_66dedcc7
  * Node list: vm
  * Job type: local (id=23329)
  * Failing phase: sanity
  * Rerun with '-n /66dedcc7 -p mpich --system local -r'
  * Reason: {}
--------------------------------------------------------------------------------
Log file(s) saved in '/suite/build/reframe/reframe.log'
"""
OURS = """\
sanity error: plumb: stack mpich is not installed (/stacks): plumb stack install mpich
--- rfm_job.out (last 10 lines) ---
--- rfm_job.out ---"""
PROGRAM = """\
spawned process error: command 'sbatch rfm_job.sh' failed with exit code 1:
--- stdout ---
--- stdout ---
--- stderr ---
sbatch: a banner
sbatch: error: invalid partition specified: nowhere
--- stderr ---"""


def failed(reason: str) -> Case:
    (case,) = cases.explained([Case("FAIL", LABEL)], FAILURE.format(reason))
    return case


def test_a_line_of_a_case_that_ended():
    assert cases.ended(f"[     FAIL ] ( 3/14) {LABEL}") == (Case("FAIL", LABEL), 3, 14)
    skipped = cases.ended(f"[     SKIP ] (1/1) {LABEL} [2 nodes asked, the partition offers 1]")
    assert skipped == (Case("SKIP", LABEL, "2 nodes asked, the partition offers 1"), 1, 1)
    assert cases.ended(f"[     SKIP ] (1/1) {LABEL} [no list[int]]")[0].reason == "no list[int]"
    assert cases.ended("[ RUN      ] osu_barrier") is None


def test_a_failed_case_has_the_reason_in_one_line_and_the_folder_of_its_job():
    case = failed(OURS)
    assert case.reason == "plumb: stack mpich is not installed (/stacks): plumb stack install mpich"
    assert case.stage == "/stage/osu_barrier_66dedcc7"
    assert case.describe() == "osu_barrier %placement=core on mpich (default)"


def test_each_of_several_failed_cases_has_its_own_reason():
    labels = [LABEL, LABEL.replace("osu_barrier", "imb_barrier")]
    output = "".join(
        FAILURE.format(reason).replace("osu_barrier %", f"{name} %")
        for name, reason in (("osu_barrier", OURS), ("imb_barrier", PROGRAM))
    )
    found = cases.explained([Case("FAIL", label) for label in labels], output)
    assert [str(case.reason).partition(":")[0] for case in found] == ["plumb", "sbatch rfm_job.sh"]


def test_of_a_program_that_failed_its_own_last_words_are_the_reason():
    assert failed(PROGRAM).reason == "sbatch rfm_job.sh: sbatch: error: invalid partition specified: nowhere"


def test_only_failures_are_explained_and_an_unexplained_one_stays():
    other = Case("FAIL", "stream_numa /1a2b3c4d @local:default+openmpi")
    fine = Case("OK", LABEL)
    assert cases.explained([fine, other], FAILURE.format(OURS)) == [fine, other]
    assert other.failed
    assert not fine.failed


def reason(stage: Path, stderr: str | None) -> str:
    """What is said of a job that left ``stderr`` and no record."""
    job = SimpleNamespace(stderr="rfm_job.err", time_limit=60.0)
    if stderr is not None:
        (stage / job.stderr).write_text(stderr, encoding="utf-8")
    part = SimpleNamespace(extras={"plumb": {"max_pending_s": 3600}})
    test = SimpleNamespace(stagedir=str(stage), job=job, current_partition=part)
    test.why_nothing = lambda: RecordShown.why_nothing(test)
    with pytest.raises(SanityError) as error:
        RecordShown.record(test)
    return str(error.value)


def test_a_job_without_a_record_is_told_in_its_own_words_or_by_its_limit(tmp_path):
    assert reason(tmp_path, None).startswith("the job never started; one that waits 3600 s")
    own = "plumb: no stack (here): install it\n"
    assert reason(tmp_path, f"{own}slurmstepd: error: exit\n").startswith("plumb: no stack")
    cancelled = "slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2026-01-01 DUE TO TIME LIMIT ***"
    assert reason(tmp_path, f"warning: slow\n{cancelled}\n") == cancelled
    assert reason(tmp_path, "") == "the job ended before its launches, without a word; its time limit is 60.0 s"


def test_without_the_closing_report_a_failed_case_has_its_phase_and_an_aborted_one_says_so():
    output = f"""\
[     FAIL ] ( 3/14) {LABEL}
P: time: 3.2 us (r:0, l:None, u:None)
==> test failed during 'sanity': test staged in '/stage/osu_barrier_66dedcc7'
[    ABORT ] ( 4/14) stream_numa /1a2b3c4d @local:default+openmpi
"""
    ended = [found[0] for line in output.splitlines() if (found := cases.ended(line))]
    broken, aborted = cases.explained(ended, output)
    assert (broken.reason, broken.stage) == ("it failed in ReFrame's phase sanity", "/stage/osu_barrier_66dedcc7")
    assert aborted.reason == "interrupted before it ended"


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("ERROR: failed to load configuration: no entry for the requested system: 'daint'\nLog file(s) saved\n",
         "ERROR: failed to load configuration: no entry for the requested system: 'daint'"),
        ("reframe: error: argument -t: expected one argument\n", "reframe: error: argument -t: expected one argument"),
        ("ERROR: could not load module mappings: a file\n    with: a detail\n\nLog file(s)\n",
         "ERROR: could not load module mappings: a file with: a detail"),
        ("Traceback (most recent call last):\n  raise ValueError('error: no')\nTypeError: unsupported operand\n",
         "TypeError: unsupported operand"),
        ("Traceback (most recent call last):\n  x\nplumbline.base.errors.PlumbError: stack x is damaged (there)\n",
         "stack x is damaged (there)"),
        ("  * Reason: plumb error: there is no program ./code (there)\nTypeError: later\n",
         "there is no program ./code (there)"),
        ("Log file(s) saved\nplumb: no site is configured for this host (here): run 'make setup'\n",
         "no site is configured for this host (here): run 'make setup'"),
        ("[==========] Running 0 check(s)\n[  PASSED  ] Ran 0/0 test case(s)\n", cases.NONE_SELECTED),
    ],
)  # fmt: skip
def test_the_reason_why_reframe_ran_nothing_is_its_own_and_whole(output, why):
    assert cases.last_words(output) == why


def test_a_system_without_stacks_is_told_of_the_site_of_this_host_that_has_some(monkeypatch):
    sites = [
        SimpleNamespace(name=name, hostnames=[host], partitions=[SimpleNamespace(stacks=stacks)])
        for name, host, stacks in (("daint", ".*", []), ("eiger", "no-host", ["mpich"]), ("local", ".*", ["mpich"]))
    ]
    monkeypatch.setattr(stage, "first_case", lambda: None)
    monkeypatch.setattr(stage, "partitions", list)
    monkeypatch.setattr(stage, "runtime", lambda: SimpleNamespace(system=SimpleNamespace(name="theirs")))
    monkeypatch.setattr(stage.site, "load_all", lambda: sites)
    with pytest.raises(PlumbError, match=r"settings\.py --system local$"):
        stage.require_stacks()
