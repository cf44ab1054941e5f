"""The work that kernels count by their models, and what the processor counts beside it, where it does."""

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from processes import ended, succeeded

from plumbline.base import paths
from plumbline.launch import profile_files

SOURCE = paths.root() / "tests/support/soft_counters.c"
DGEMM = ("dgemm", "--size", "256", "--repetitions", "2")


@pytest.fixture(scope="module")
def soft(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the kernel's software counters stand for those of the processor."""
    library = tmp_path_factory.mktemp("counters") / "soft_counters.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-o", library, SOURCE, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def work(document: dict[str, Any]) -> dict[str, Any]:
    return dict(document["work"])


def test_a_model_is_what_all_ranks_did_in_all_repetitions(kernel_stack):
    regular = ("--stores", "regular", "--repetitions", "5")
    found = work(kernel_stack.json(2, "membw", "--kernels", "triad", "--size", "4096", "--sweeps", "3", *regular))
    assert (found["flop"], found["bytes"]) == (0, 2 * 5 * 3 * 4096 * 32)
    found = work(kernel_stack.json(2, "jacobi", "--mode", "pure", "--size", "32,16,16", "--sweeps", "4", *regular))
    updates = 32 * 16 * 16 * 4 * 5
    assert (found["flop"], found["bytes"]) == (6 * updates, 24 * updates)


def test_products_and_the_peak_are_both_work(one_stack):
    document = one_stack.json(2, *DGEMM)
    products = 2 + next(item["samples"] for item in document["measurements"] if item["metric"] == "rate")
    assert work(document)["flop"] > 2 * products * 2 * 256**3
    assert work(document)["bytes"] == 0


def test_counters_run_while_something_is_timed(one_stack, soft):
    """Nanoseconds of CPU time stand for instructions (soft_counters.c); no core does 1000 operations in one."""
    document = one_stack.json(1, *DGEMM, env={**soft, "OMP_NUM_THREADS": "2"})
    assert "missing" not in work(document)
    assert work(document)["counted"]["instructions"] > work(document)["flop"] / 1000


@pytest.mark.parametrize(("error", "said"), [
    (errno.ENOENT, "the host shows no hardware counters, as is usual in virtual machines"),
    (errno.EBUSY, "other programs use the hardware counters"),
    (errno.ENOSYS, f"perf_event_open: {os.strerror(errno.ENOSYS)}"),
])  # fmt: skip
def test_why_nothing_is_counted_is_said(one_stack, soft, error, said):
    document = one_stack.json(2, *DGEMM, env={**soft, "FAKE_COUNTERS": str(error)})
    assert work(document)["missing"] == said
    assert document["notes"].count(f"not counted: {said}") == 1


def test_a_refusal_names_the_setting_where_it_is_the_cause(one_stack, soft):
    level = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii"))
    document = one_stack.json(1, *DGEMM, env={**soft, "FAKE_COUNTERS": str(errno.EACCES)})
    setting = f"kernel.perf_event_paranoid is {level}; 2 is enough"
    assert work(document)["missing"] == (setting if level > 2 else f"perf_event_open: {os.strerror(errno.EACCES)}")


def test_kernels_without_a_model_of_work_say_nothing_of_it(one_stack):
    assert "work" not in one_stack.json(1, "pi")


@pytest.mark.parametrize(("fake", "said"), [
    ({}, "counted in user mode: "), ({"FAKE_COUNTERS": str(errno.EBUSY)}, "not counted: other programs use"),
])  # fmt: skip
def test_a_profile_counts_any_program_from_outside(one_stack, soft, tmp_path, fake, said):
    """The counters of the driver go to the ranks through the launcher; the record keeps what they saw."""
    words = ["profile", "--stack", one_stack.name, "--placement", "core", "--threads", "1", "--ranks", "2", "--"]
    program = [str(one_stack.programs / "heat1d"), "--repetitions", "5"]
    command = [paths.program("plumb"), "--results", tmp_path, *words, *program]
    done = succeeded(ended(command, env={**os.environ, **soft, **fake}, cwd=paths.root()))
    assert [line for line in done.stdout.splitlines() if line.startswith(said)]
    (file,) = tmp_path.glob("*/profiles/*.json")
    kept = profile_files.load(file).work
    assert (bool(kept.counted), bool(kept.missing)) == (not fake, bool(fake))
