"""On a machine with a GPU of NVIDIA: our figures and proofs beside programs and counters that are not ours.

    .venv/bin/python -m pytest tests/kernels/test_gpu_real.py -s    # prints the figures, too

Without a GPU all of them are skipped. They use the compiler, the profiler and the memory checker of NVIDIA's toolkit
where these are installed.
"""

import csv
import os
import shutil
from pathlib import Path

import pytest
from processes import ended, succeeded

from plumbline.base.table import table
from plumbline.host import devices, nvml

#: of a copy and of an array of the triad: several times what an L2 cache holds
BYTES = 256 << 20
#: what our rates may be of a plain program's: ours are of the host's clock and include the start
RATES = (0.85, 1.05)
ALIKE = ("--bytes", str(BYTES), "--repetitions", "20")
SMALL = ("--bytes", "3M", "--repetitions", "3", "--json")


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if found is None:
        pytest.skip(f"not run: no {name} of NVIDIA's toolkit here")
    return found


def output(*command: object) -> str:
    done = succeeded(ended([str(word) for word in command]))
    return done.stdout


def smi(*fields: str) -> list[str]:
    """What ``nvidia-smi`` says of the first GPU by PCI address."""
    rows = output("nvidia-smi", "--format=csv,noheader,nounits", f"--query-gpu=pci.bus_id,{','.join(fields)}")
    return [value.strip() for value in min(rows.splitlines()).split(",")]


@pytest.fixture(autouse=True)
def address() -> str:
    """The PCI address of the first GPU, as sysfs writes it, by ``nvidia-smi``."""
    if shutil.which("nvidia-smi") is None or not nvml.gpus():
        pytest.skip("not run: no GPU of NVIDIA here")
    return smi("name")[0].lower()[-12:]


def rates(document: dict) -> dict[str, float]:
    found = {}
    for item in document["measurements"]:
        params = item["params"]
        if item["metric"] == "bandwidth" and (params.get("memory") == "pinned" or params.get("level") == "memory"):
            found[params["way"]] = item["value"]
    return {name: found[name] for name in ("in", "out", "triad")}


@pytest.mark.alone
def test_rates_are_those_of_a_plain_program(one_stack, tmp_path):
    plain = tmp_path / "plain_gpu"
    output(tool("nvcc"), "-O2", "-arch=native", "-std=c++17", "-o", plain, Path(__file__).with_name("plain_gpu.cu"))
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    for _ in range(3):
        now = rates(one_stack.json(1, "gpu_memory", *ALIKE))
        ours = {name: max(rate, ours.get(name, 0.0)) for name, rate in now.items()}
        for name, rate in map(str.split, output(plain, BYTES, 20).splitlines()):
            theirs[name] = max(float(rate), theirs.get(name, 0.0))
    header = [smi("name")[1], "kernel MB/s", "plain MB/s", "ratio"]
    rows = [[name, f"{ours[name]:.0f}", f"{rate:.0f}", f"{ours[name] / rate:.3f}"] for name, rate in theirs.items()]
    print(table(header, rows, right=header[1:]))
    assert set(theirs) == {"in", "out", "triad"}
    assert all(RATES[0] < ours[name] / rate < RATES[1] for name, rate in theirs.items())


def test_bytes_of_the_triad_are_those_of_the_gpus_counters(one_stack):
    """24 bytes an element, 16 read and 8 written. Two starts without elements come first, for the time of a start."""
    metrics = "dram__bytes_read.sum,dram__bytes_write.sum"
    options = ("--clock-control", "none", "--metrics", metrics, "--csv", "--print-units", "base")
    words = ("--kernel-name", "triad", "--launch-skip", "2", "--launch-count", "1", *options)
    program = one_stack.programs / "gpu_memory"
    text = output(tool("ncu"), *words, program, "--bytes", BYTES, "--repetitions", 1, "--json")
    lines = [line for line in text.splitlines() if line.startswith('"')]
    values = {row["Metric Name"]: float(row["Metric Value"].replace(",", "")) for row in csv.DictReader(lines)}
    counted = {name: values[f"dram__bytes_{name}.sum"] for name in ("read", "write")}
    print({name: value / BYTES for name, value in counted.items()}, "arrays")
    assert 1.9 < counted["read"] / BYTES < 2.1
    assert 0.8 < counted["write"] / BYTES < 1.1


def test_the_memory_checker_finds_nothing(one_stack):
    checker = (tool("compute-sanitizer"), "--error-exitcode", "9", "--leak-check", "full")
    assert "ERROR SUMMARY: 0 errors" in output(*checker, one_stack.programs / "gpu_memory", *SMALL)


def test_a_launch_beside_the_gpu_is_proven(kernel_stack, tmp_path, monkeypatch, address):
    """Its GPU by ``nvidia-smi``; its joules between none and what the GPU may take at most."""
    arguments = ("--bytes", str(BYTES), "--repetitions", "20", "--json")
    asked = {"placement": "gpu", "ranks": 1, "nodes": 1, "arguments": arguments, "figures": []}
    record = kernel_stack.record(tmp_path, monkeypatch, "gpu_memory", **asked)
    (launch,) = record["launches"]
    assert (launch["verified"], launch["reasons"]) == (True, [])
    assert {row["params"]["device"] for row in launch["measurements"]} == {address}
    (joules,) = [value for gpu, value in launch["gpu_energy_j"].items() if gpu == address]
    watts = joules / launch["wall_s"]
    print(f"{joules:.0f} J in {launch['wall_s']:.1f} s: {watts:.0f} W; limit {smi('power.limit')[1]} W")
    assert 5.0 < watts < 1.1 * float(smi("power.limit")[1])


def test_its_link_is_that_of_nvidia_smi(address):
    (found,) = [device for device in devices.document()["devices"] if device["address"] == address]
    assert found["label"].startswith("GPU")
    if "link" not in found:
        pytest.skip("not run: sysfs does not know the link of this GPU")
    _, width, most = smi("pcie.link.width.current", "pcie.link.width.max")
    assert (found["link"]["width"], found["link"]["best_width"]) == (int(width), int(most))
