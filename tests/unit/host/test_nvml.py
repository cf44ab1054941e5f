"""NVML by a library that is made up (tests/support/fake_nvml.c): NVLinks in the matrix, joules of GPUs."""

import functools
import json
from collections import Counter
from pathlib import Path

import pieces
import pytest
from kernel_stack import made_up
from samples import launch, record

from plumbline.base import paths
from plumbline.host import devices, energy, nvml, provenance
from plumbline.records.model import convert
from plumbline.show import record as show
from plumbline.show.report import data

A, B, C, D = "0000:03:00.0", "0000:04:00.0", "0000:83:00.0", "0001:c1:00.0"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The library at a path of its own, so that each test opens it anew."""
    monkeypatch.setattr(nvml, "LIBRARY", str(made_up(tmp_path / nvml.LIBRARY, "fake_nvml.c")))
    return monkeypatch


def test_links_that_are_up_are_counted_between_two_gpus(library):
    library.setenv("FAKE_NVML", "direct")
    assert devices.between_gpus(Path("/nothing")) == {frozenset((A, B)): "NV2", frozenset((B, C)): "NV1"}


def test_switches_join_as_many_links_as_both_have_there(library):
    library.setenv("FAKE_NVML", "switches")
    found = devices.between_gpus(Path("/nothing"))
    assert {pair for pair, word in found.items() if word == "NV4"} == {frozenset((gpu, D)) for gpu in (A, B, C)}
    assert {word for pair, word in found.items() if D not in pair} == {"NV5"}
    assert len(found) == 6


def test_a_link_to_a_gpu_that_is_not_shown_joins_nothing():
    ends = {A: Counter({"0000:ff:00.0": 4}), B: Counter({A: 0})}
    assert nvml.nvlinks(ends) == {}


def test_they_stand_in_this_hosts_matrix(library):
    library.setenv("FAKE_NVML", "direct")
    text = devices._binder_document(paths.root() / "site-configs/comet/topology/gpu-k80.xml")
    library.setattr(devices, "_binder_document", lambda topology: text)
    found = devices.load()
    assert list(found.ways[0]) == ["X", "NV2", "SYS", "SYS", "SYS"]
    assert found.devices[0].names == ("card0", "Tesla K80")
    assert devices.document()["devices"][0]["names"] == ("card0", "Tesla K80")
    assert tuple(map(tuple, devices.document()["ways"])) == found.ways
    drawn = " ".join("\n".join(devices.draw(found, {}, 100)).split())
    assert "NV# # NVLinks;" in drawn
    host = {**record()["host"], "hostname": "node1", "devices": json.loads(text) | {"ways": found.ways}}
    page = pieces.section(data.document("local", [convert(record(host=host))]), "devices")
    assert "NV#: # NVLinks" in pieces.blocks(page, "bullets")[0]["pieces"]


def test_a_gpu_without_a_model_keeps_its_names(library):
    library.setenv("FAKE_NVML", "name")
    text = devices._binder_document(paths.root() / "site-configs/comet/topology/gpu-k80.xml")
    library.setattr(devices, "_binder_document", lambda topology: text)
    assert devices.load().devices[0].names == ("card0",)


def test_joules_of_gpus_are_millijoules_by_their_counters(library):
    meter = energy.gpus()
    assert meter is not None
    assert str(meter) == f"NVML: {A}, {B}, {C}, {D}"
    first = energy.Reading.now(meter)
    assert first.until(energy.Reading.now(meter)) == dict.fromkeys((A, B, C, D), 0.004)
    library.setenv("FAKE_NVML", "energy")
    assert first.until(energy.Reading.now(meter)) is None
    assert str(energy.gpus()) == f"not read: NVML: GPU {A}: Not Supported"


@pytest.mark.parametrize(
    ("fault", "said"), [("init", "libnvidia-ml.so.1: Uninitialized"), ("handle", "GPU 0: Invalid Argument")]
)
def test_a_library_that_fails_is_said_once(library, fault, said):
    library.setenv("FAKE_NVML", fault)
    assert devices.between_gpus(Path("/nothing")) == {}
    host = provenance.measured()
    assert host["gpu_energy"].startswith("not read: NVML: ")
    assert host["gpu_energy"].endswith(said)
    items = [convert(record(host=host, id=f"{number:012x}")) for number in range(2)]
    (missing,) = pieces.blocks(pieces.section(data.document("local", items), "work"), "bullets")
    assert list(missing["pieces"]).count(f"joules of GPUs {host['gpu_energy']}") == 1


def test_a_host_without_it_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(nvml, "LIBRARY", str(tmp_path / "none.so"))
    assert energy.gpus() is None
    assert devices.between_gpus(tmp_path) == {}
    assert "gpu_energy" not in provenance.measured()


def test_they_stand_beside_those_of_the_processors():
    make = functools.partial(launch, gpu_energy_j={A: 100.0, B: 50.5})
    alone = convert(record(launches=[make(0, 1e4), make(1, 1e4)]))
    assert "energy of GPUs J" in show.text(alone)
    assert ["150.5"] in [line.split() for line in show.text(alone).splitlines()]
    both = convert(record(launches=[make(0, 1e4, energy_j={"package-0": 20.0})]))
    assert ["20.00", "20.00", "150.5"] in [line.split() for line in show.text(both).splitlines()]
    lines = [line.split() for line in show.text(both).splitlines()]
    energies = ["energy", "J", "energy", "of", "GPUs", "J"]
    assert ["launch", "start", "wall", "s", *energies, "status", "verified"] in lines
    assert any(words[3:5] == ["20", "150"] for words in lines if words and words[0] == "0")
