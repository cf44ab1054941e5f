"""What to write in plumb.yaml, by the reasons that others give and the threads that were seen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from plans import typed as plan_of
from witnesses import typed

from plumbline.launch.conclusions import with_cures
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
    return SimpleNamespace(seen=seen, job=SimpleNamespace(binds=binds), ended=SimpleNamespace(status=status))


@pytest.mark.parametrize(
    ("threads", "binds", "cure"),
    [
        ([([0, 1], 1.0), ([0, 1], 0.001)], "threads", "write threads: 1 in plumb.yaml, as one thread"),
        ([([0, 1], 0.15), ([0, 1], 0.014)], "threads", "write threads: 1 in plumb.yaml, as one thread"),
        ([([0, 1], 1.0), ([0, 1], 1.0)], "threads", "write binds: ranks in plumb.yaml if these"),
        ([([1], 1.0), ([1], 1.0)], "threads", "if the program binds its threads, write binds: itself"),
        ([([0, 1], 1.0), ([0, 1], 1.0)], "itself", "write the placement in plumb.yaml that the program"),
        ([([0, 2], 1.0), ([1], 1.0)], "ranks", "if the program binds its threads, write binds: itself"),
    ],
)
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
