"""What to write in plumb.yaml, by the reasons that others give and the threads that were seen."""

from types import SimpleNamespace

import pytest
from plans import typed as plan_of
from witnesses import typed

from plumbline.launch.conclusions import RULES, with_cures
from plumbline.launch.witness.compare import compare

PLAN = plan_of(
    {
        "threads": 2,
        "ranks": [{"local_rank": 0, "cpus": [0, 1], "places": [[0], [1]], "mem": {"policy": "none", "nodes": []}}],
    }
)


def said(*threads: tuple[list[int], float], binds: str = "threads") -> list[str]:
    """Why a rank with ``threads`` (CPUs, CPU time) does not prove :data:`PLAN`, with cures."""
    seen = typed(
        {
            "plan": {"cpus": [0, 1], "places": [] if binds == "itself" else [[0], [1]]},
            "usage": {"user_s": sum(cpu_s for _, cpu_s in threads)},
            "threads": [
                {"tid": tid, "affinity": cpus, "last_cpu": cpus[0], "cpu_s": cpu_s}
                for tid, (cpus, cpu_s) in enumerate(threads)
            ],
        }
    )
    return with_cures(run([seen], binds), compare(PLAN, [seen], {"n1": 1}, binds=binds))


def run(seen: list, binds: str, status: str = "ok") -> SimpleNamespace:
    variant, built = SimpleNamespace(context={}), SimpleNamespace(built=None)
    job = SimpleNamespace(binds=binds, variant=variant, files=built)
    return SimpleNamespace(seen=seen, job=job, ended=SimpleNamespace(status=status), changed=[], of_build=({}, {}))


@pytest.mark.parametrize(("threads", "binds", "cure"), [
    ([([0, 1], 1.0), ([0, 1], 0.001)], "threads", "write threads: 1 in plumb.yaml, as one thread"),
    ([([0, 1], 0.15), ([0, 1], 0.014)], "threads", "write threads: 1 in plumb.yaml, as one thread"),
    ([([0, 1], 1.0), ([0, 1], 1.0)], "threads", "write binds: ranks in plumb.yaml if these"),
    ([([1], 1.0), ([1], 1.0)], "threads", "if the program binds its threads, write binds: itself"),
    ([([0, 1], 1.0), ([0, 1], 1.0)], "itself", "write the placement in plumb.yaml that the program"),
    ([([0, 2], 1.0), ([1], 1.0)], "ranks", "if the program binds its threads, write binds: itself"),
])  # fmt: skip
def test_the_cure_is_chosen_by_the_threads_that_worked_and_said_once(threads, binds, cure):
    found = said(*threads, binds=binds)
    assert cure in found[0]
    assert sum("write" in reason for reason in found) <= 1


def test_reasons_without_a_cure_and_launches_that_failed_stay_as_they_are():
    reasons = ["input.txt was changed since the session began", "local rank 0 on n1 left no witness: it was killed"]
    assert with_cures(run([], "threads", "failed"), reasons) == reasons
    first, second = with_cures(run([], "threads"), reasons)
    assert first == reasons[0]
    assert second.startswith(f"{reasons[1]}; the launch ended well, so the ranks are linked statically, or")


@pytest.mark.parametrize(("changed", "program", "cure"), [
    ("case/U", "/b/heat", "write copy: [case] in plumb.yaml: each launch gets files of its own"),
    ("heat.plan", "/b/heat", "write copy: [heat] in plumb.yaml: each launch gets files of its own"),
    ("state/log", "/b/state/heat", "let the program write in the folder where it runs"),
    ("heat.log", "/usr/bin/python", "let the program write in the folder where it runs"),
])  # fmt: skip
def test_whoever_changes_the_build_is_told_what_to_copy(changed, program, cure):
    ran = run([], "threads")
    ran.of_build = ({"earlier": "gone"}, {changed: "new"})
    ran.job.files.built = SimpleNamespace(folder="/b")
    ran.job.variant.context = {"program": program, "inputs": {"case": "/b/case"}, "copy": {"state": "/b/state"}}
    before, said = with_cures(ran, RULES[1].evidence(ran))
    assert before.endswith("had been changed before this launch: earlier (gone); the next command builds it again")
    assert said.startswith(f"the launch changed files of the build: {changed} (new); {cure}")
