"""What a campaign reads in ReFrame's output: the samples are ReFrame 4.10's own words."""

from __future__ import annotations

from plumbline import cases
from plumbline.cases import Case

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


def test_a_line_of_a_case_that_ended() -> None:
    assert cases.ended(f"[     FAIL ] ( 3/14) {LABEL}") == (Case("FAIL", LABEL), 3, 14)
    skipped = cases.ended(f"[     SKIP ] (1/1) {LABEL} [2 nodes asked, the partition offers 1]")
    assert skipped == (Case("SKIP", LABEL, "2 nodes asked, the partition offers 1"), 1, 1)
    assert cases.ended("[ RUN      ] osu_barrier") is None


def test_a_failed_case_has_the_reason_in_one_line_and_the_folder_of_its_job() -> None:
    case = failed(OURS)
    assert case.reason == "plumb: stack mpich is not installed (/stacks): plumb stack install mpich"
    assert case.stage == "/stage/osu_barrier_66dedcc7"
    assert case.describe() == "osu_barrier %placement=core on mpich (default)"


def test_of_a_program_that_failed_its_own_last_words_are_the_reason() -> None:
    assert failed(PROGRAM).reason == "sbatch rfm_job.sh: sbatch: error: invalid partition specified: nowhere"


def test_only_failures_are_explained_and_an_unexplained_one_stays() -> None:
    other = Case("ABORT", "stream_numa /1a2b3c4d @local:default+openmpi")
    fine = Case("OK", LABEL)
    assert cases.explained([fine, other], FAILURE.format(OURS)) == [fine, other]
    assert other.failed
    assert not fine.failed
