"""Rates of GPUs in plumb-check, by a driver simulated in C; tests/kernels/test_gpu_real.py has a real one."""

import json
import os
import shutil
import stat

import processes
import pytest
from check_runs import class_file, run
from kernel_stack import fake_cuda

from plumbline.base import paths

FIGURES = ["gpu.in", "gpu.out", "gpu.memory"]
#: rates that any copy exceeds
LIMITS = tuple(f"{name} 1e-6 1e-6 1e-6 0.1" for name in FIGURES)


def checked(folder, gpus="one", limits=LIMITS, budget="25 1", program=None, **more):
    """What a check of one round says where GPUs are as ``gpus`` says (``FAKE_CUDA``)."""
    around = {**os.environ, **fake_cuda(folder), "FAKE_CUDA": gpus, **more}
    seconds = budget.split()[0]
    file = class_file(folder, limits=[f"limit {seconds} {text}" for text in limits], budgets=(budget,))
    words = ["--class", file, "--seconds", seconds, "--node", "here", "--form", "json", "--state", folder / "state"]
    return dict(json.loads(run(*words, env=around, program=program).stdout))


def test_each_figure_is_of_the_slowest_gpu_which_is_named(tmp_path):
    found = checked(tmp_path, "two slow", ("gpu.in 0.4 0.4 0.4 0.1",))
    figures = {figure["name"]: figure["value"] for figure in found["figures"]}
    slow = 32 * 2**20 / 0.1 * 1e-9  # 0.1 s more for each copy to the second one
    assert 0.1 * slow < figures["gpu.in"] < slow < figures["gpu.out"], figures
    assert figures["gpu.memory"] > slow
    (line,) = [line for line in found["bad"] + found["doubts"] if line.startswith("gpu.in is 0.")]
    assert " on GPU 1 (limit 0.4 GB/s, 1 of 1 rounds)" in line
    assert (line in found["bad"]) != line.endswith("but beside other work")


def test_all_gpus_are_measured_whatever_the_environment_hides(tmp_path):
    assert checked(tmp_path, CUDA_VISIBLE_DEVICES="7")["doubts"] == []


@pytest.mark.parametrize(("fault", "said"), [("copy", "what was copied to a GPU and back"), ("triad", "a triad")])
def test_a_wrong_result_is_bad(tmp_path, fault, said):
    found = checked(tmp_path, fault)
    assert found["state"] == "bad"
    assert f"wrong result: {said} of GPU 0 (0000:c1:00.0)" in found["bad"]


@pytest.mark.parametrize(("fault", "said"), [
    ("init", "plumb-check-gpu: the CUDA driver: no CUDA-capable device is detected"),
    ("none", "plumb-check-gpu: the CUDA driver shows none"),
    ("memory", "plumb-check-gpu: the CUDA driver: 134217728 bytes of the GPU's memory: out of memory"),
])  # fmt: skip
def test_gpus_that_cannot_be_measured_are_a_doubt_and_all_else_is_judged(tmp_path, fault, said):
    found = checked(tmp_path, fault)
    assert found["state"] == "doubt"
    assert f"GPUs cannot be measured: {said}" in found["doubts"]
    assert "gpu.in was not measured" in found["doubts"]
    assert {"memory", "fma"} <= {figure["name"] for figure in found["figures"]}


def test_a_program_that_is_not_beside_it_is_a_doubt(tmp_path):
    alone = tmp_path / "plumb-check"
    shutil.copy(paths.checker(), alone)
    alone.chmod(stat.S_IRWXU)
    doubts = checked(tmp_path, program=alone)["doubts"]
    assert f"GPUs cannot be measured: {tmp_path}/plumb-check-gpu: No such file or directory" in doubts


def test_without_limits_of_gpus_none_are_looked_at(tmp_path):
    found = checked(tmp_path, "init", ("memory 1e-6 1e-6 1e-6 0.1",))
    assert found["state"] == "ok", found
    assert not [figure for figure in found["figures"] if figure["name"].startswith("gpu")]


def test_a_driver_that_does_not_answer_ends_with_the_check(tmp_path):
    found = checked(tmp_path, "hangs", budget="4 1", MARK=str(tmp_path))
    assert "the time was over after 0 of 1 rounds" in found["doubts"]
    processes.wait_gone(f"MARK={tmp_path}")
