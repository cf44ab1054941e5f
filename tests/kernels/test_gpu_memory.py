"""``gpu_memory``: what it prints and refuses on a made-up driver; its PTX by NVIDIA's assembler, where there is one."""

import os
import re
import shutil

import broken_kernel
import pytest
from kernel_stack import fake_cuda
from processes import ended
from witnesses import typed

from plumbline.base import paths
from plumbline.launch import conclusions
from plumbline.parsers.measurement import Measurement

TINY = ("--bytes", "3M", "--repetitions", "3")
RATES = {("in", "pageable"), ("out", "pageable"), ("in", "pinned"), ("out", "pinned"), ("both", "pinned")}


def test_every_figure_on_the_gpus_of_all_ranks(kernel_stack, tmp_path):
    document = kernel_stack.json(2, "gpu_memory", *TINY, env=fake_cuda(tmp_path))
    assert {item["params"]["device"] for item in document["measurements"]} == {"0000:c1:00.0,0000:c1:00.0"}
    seen = {(item["metric"], item["params"]["way"], item["params"].get("memory")) for item in document["measurements"]}
    wanted = {("bandwidth", way, memory) for way, memory in RATES}
    assert seen == wanted | {("time", "in", None), ("time", "start", None), ("bandwidth", "triad", None)}
    triads = {item["params"]["level"]: item for item in document["measurements"] if item["params"]["way"] == "triad"}
    assert triads["memory"]["params"]["bytes"] == 9 << 20
    assert triads["l2"]["params"]["bytes"] == (2 << 20) // 24 * 24
    assert triads["memory"]["limit"] == 2 * 1e6 * 4096 / 8 * 1e-3  # of the one GPU of both ranks
    assert triads["l2"]["limit"] is None


@pytest.mark.parametrize(("gpus", "path"), [("two", "direct"), ("two far", "host")])
def test_copies_to_a_second_gpu(one_stack, tmp_path, gpus, path):
    document = one_stack.json(2, "gpu_memory", *TINY, env=fake_cuda(tmp_path) | {"FAKE_CUDA": gpus})
    assert "copied to the second GPU and back" in [item["what"] for item in document["checks"]]
    (row,) = [item["params"] for item in document["measurements"] if item["params"]["way"] == "over"]
    assert (row["second"], row["path"], row["bytes"]) == ("0000:c2:00.0,0000:c2:00.0", path, 3 << 20)


def test_pinned_copies_by_size(one_stack, tmp_path):
    words = (*TINY, "--least", "64K")
    found = one_stack.json(1, "gpu_memory", *words, env=fake_cuda(tmp_path))["measurements"]
    for way in ("in", "out", "both"):
        rows = [item["params"] for item in found if item["metric"] == "bandwidth" and item["params"]["way"] == way]
        sizes = [64 << 10, 256 << 10, 1 << 20, 3 << 20]
        assert [row["bytes"] for row in rows if row["memory"] == "pinned"] == sizes
        assert {row["bytes"] for row in rows if row["memory"] == "pageable"} <= {3 << 20}


@pytest.mark.parametrize(("speed", "of_a_lane"), [("5.0", 500), ("32.0", 4e6 / 130 * 128 / 1e3), ("64.0", 7562.5)])
def test_copies_have_the_limit_of_the_link(one_stack, tmp_path, speed, of_a_lane):
    """A link as wide as none, so that copies of the simulated GPU are not faster."""
    device = tmp_path / "sys/0000:c1:00.0"
    device.mkdir(parents=True)
    (device / "current_link_speed").write_text(f"{speed} GT/s PCIe\n")
    (device / "current_link_width").write_text("10000\n")
    program = broken_kernel.build(
        tmp_path, one_stack, "gpu_memory", file="pci_link.c", old="/sys/bus/pci/devices", new=str(device.parent),
    )  # fmt: skip
    found = one_stack.json(2, str(program), *TINY, env=fake_cuda(tmp_path))["measurements"]
    limits = {item["params"]["way"]: item["limit"] for item in found if "memory" in item["params"]}
    link = pytest.approx(of_a_lane * 1e4)
    assert limits == {"in": link, "out": link, "both": pytest.approx(2 * of_a_lane * 1e4)}


def test_copies_that_are_faster_than_the_link_have_no_limit(one_stack, tmp_path):
    program = broken_kernel.build(
        tmp_path, one_stack, "gpu_memory", file="pci_link.c", old="    return gts * 1e3", new="    return 1; return gts"
    )
    found = one_stack.json(1, str(program), *TINY, env=fake_cuda(tmp_path))["measurements"]
    assert {item["limit"] for item in found if "memory" in item["params"]} == {None}


def test_a_driver_that_tells_no_clock_leaves_no_limit(one_stack, tmp_path):
    env = fake_cuda(tmp_path) | {"FAKE_CUDA": "silent"}
    document = one_stack.json(1, "gpu_memory", *TINY, env=env)
    assert not any(item["limit"] for item in document["measurements"])
    assert not any(item["params"].get("level") == "l2" for item in document["measurements"])


@pytest.mark.parametrize(
    ("fault", "check"),
    [("copy", "copied in and out again"), ("triad", "triad"), ("two wrong", "copied to the second GPU and back")],
)
def test_a_wrong_answer_is_no_figure(one_stack, tmp_path, fault, check):
    around = fake_cuda(tmp_path) | {"FAKE_CUDA": fault}
    document = one_stack.json(1, "gpu_memory", *TINY, env=around, passes=False)
    assert check in [item["what"] for item in document["checks"] if not item["passed"]]


@pytest.mark.parametrize(("fault", "said"), [
    ("init", "no GPU: the CUDA driver: no CUDA-capable device is detected"),
    ("none", "no GPU: the CUDA driver shows none"),
    ("memory", "the CUDA driver: 3145728 bytes of the GPU's memory: out of memory"),
    ("ptx", "the CUDA driver: compiling PTX: an error that it does not know"),
])  # fmt: skip
def test_no_gpu_is_one_line(one_stack, tmp_path, fault, said):
    done = one_stack.mpirun(1, "gpu_memory", *TINY, env=fake_cuda(tmp_path) | {"FAKE_CUDA": fault})
    assert done.returncode == 2
    assert done.stdout == ""
    assert next(line for line in done.stderr.splitlines() if "gpu_memory" in line) == f"gpu_memory: {said}"


def test_no_driver_is_one_line_on_every_library(each_stack, tmp_path):
    (tmp_path / "libcuda.so.1").write_text("no library")
    done = each_stack.mpirun(2, "gpu_memory", *TINY, env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 2
    assert [line.partition(":")[0] for line in done.stderr.splitlines() if "libcuda" in line] == ["gpu_memory"]
    assert "gpu_memory: no GPU: " in done.stderr


def test_another_gpu_than_planned_is_a_reason():
    def seen(rank: int, *devices: str) -> dict:
        return {"rank": rank, "plan": {"devices": list(devices)} if devices else {}}

    def said(used: str, *ranks: dict) -> list[str]:
        row = Measurement("bandwidth", 1.0, "MB/s", "higher", {"device": used})
        return conclusions._devices([row], list(map(typed, ranks)))

    assert said("a,b", seen(1, "b"), seen(0, "a")) == []
    assert said("b,a", seen(1, "b"), seen(0, "a")) == ["the driver used the GPUs b,a, planned: a,b"]
    assert said("a", seen(0)) == []


def ptx() -> str:
    text = (paths.root() / "custom-kernels/kernels/node/gpu_triad.ptx.h").read_text(encoding="utf-8")
    return "".join(line.encode().decode("unicode_escape") for line in re.findall(r'"(.*)"', text))


@pytest.mark.parametrize("processor", ["sm_52", "sm_60", "sm_70", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_the_ptx_is_what_the_assembler_takes(processor, tmp_path):
    places = f"{paths.root() / 'build/ptx/nvidia/cuda_nvcc/bin'}:{os.environ['PATH']}"
    assembler = shutil.which("ptxas", path=places)
    if assembler is None:
        pytest.skip("NVIDIA's assembler ptxas is not here: make ptx takes it from a wheel of 40 MB")
    (tmp_path / "triad.ptx").write_text(ptx())
    command = [assembler, f"-arch={processor}", "-o", str(tmp_path / "triad"), str(tmp_path / "triad.ptx")]
    done = ended(command)
    if f"'{processor}' is not defined for option 'gpu-name'" in done.stderr:
        pytest.skip(f"not run: this ptxas no longer knows {processor}")
    assert (done.returncode, done.stderr) == (0, "")
