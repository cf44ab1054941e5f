"""A contract that is really measured on this host: STREAM on the node, latency between two cores."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import acceptance
import own_code
import pytest
import small_caches
import two_nodes
import yaml

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras.accept import model, verdict
from plumbline.host import binder, machine
from plumbline.judge import samples
from plumbline.records import store
from plumbline.records.model import Record

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

TRIAD = {
    "name": "bandwidth", "test": "stream_threads", "stack": "mpich", "figure": "triad", "over": "each node",
    "at_least": 0.001, "unit": "GB/s", "confidence": 0.75, "launches": 2,
}  # fmt: skip
LATENCY = {
    "name": "latency", "test": "imb_pair", "stack": "mpich", "figure": "latency", "where": {"bytes": 64},
    "over": "each node", "at_most": 0.000001, "unit": "us", "confidence": 0.75, "launches": 2,
}  # fmt: skip


def two_cores() -> str:
    """A placement of two ranks on two cores that this host has."""
    topology = paths.sites() / "local" / "topology" / "default.xml"
    for placement in ("pair:l3", "pair:l2", "pair:numa", "pair:socket"):
        with contextlib.suppress(PlumbError):
            binder.resolve(placement, topology=topology, machine="this host")
            return placement
    pytest.skip("no two cores here share a cache or a memory")


def contract(folder: Path, **changes: Any) -> Path:
    """Both clauses, the second with a limit that nothing meets."""
    node = machine.load(paths.sites() / "local" / "topology" / "default.xml")
    threads = machine.node_threads([node])[0]
    triad = {**TRIAD, "params": {"placement": "compact", "threads": threads}, **changes}
    latency = {**LATENCY, "params": {"operation": "PingPong", "placement": two_cores()}}
    file = folder / "contract.yaml"
    file.write_text(yaml.safe_dump(acceptance.contract(triad, latency, nodes=1), sort_keys=False))
    return file


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Callable[..., tuple[int, str]], dict[str, Any]]:
    """The folder, ``plumb accept`` there, and what it found. Beside small caches STREAM's arrays are small."""
    folder = tmp_path_factory.mktemp("accept")
    with pytest.MonkeyPatch.context() as patch:
        small_caches.pretend(folder, 1 << 20, patch)
        around = own_code.variables(folder)

    def accept(*words: str) -> tuple[int, str]:
        return own_code.plumb(folder, around, "accept", *words)

    contract(folder)
    status, output = accept("contract.yaml", "--output", "found.json", "--archive", "a.tar")
    assert status in (1, 2), output
    found = json.loads((folder / "found.json").read_text())
    return folder, accept, {one["clause"]: one for one in found["clauses"]}


def test_a_low_limit_passes_and_an_absurd_one_fails(measured):
    """A clause of which every launch was disturbed is unknown, and says so."""
    found = measured[2]
    for name, expected in (("bandwidth", "pass"), ("latency", "fail")):
        one = found[name]
        if one["verdict"] == "unknown":
            assert "disturbed" in one["reason"] or "not verified" in one["reason"]
        else:
            assert one["verdict"] == expected
            assert one["launches"] >= 2
            assert one["usual"] > 0


def test_the_values_that_were_measured_decide_once_disturbance_is_set_aside(measured):
    """Also where the machine was busy the whole time: values, units and points of curves are those of real records."""
    folder = measured[0]
    records = [item for file in (folder / "results").rglob("*.jsonl") for item in store.read(file)]
    kept = [item for item in records if isinstance(item, Record) and item.is_valid]
    for record in kept:
        for launch in record.launches:
            launch.disturbed = False
    judged = verdict.judge(model.load(folder / "contract.yaml"), kept)
    assert [one.word for one in judged] == ["pass", "fail"]


def test_the_archive_gives_the_verdict_again(measured):
    folder, accept, _ = measured
    shown = accept("contract.yaml", "--recorded")
    verified = accept("--verify", "a.tar")
    assert shown[0] == verified[0]
    assert verified[1].startswith(shown[1])
    beside = accept("contract.yaml", "--recorded", "--offered", "a.tar")
    assert beside[0] == shown[0]
    assert "delivered" in beside[1].splitlines()[0]
    assert (folder / "results" / "local").is_dir()


def test_too_few_launches_are_unknown(measured, tmp_path):
    """The same records, for a contract that asks for more of them."""
    _, accept, _ = measured
    status, output = accept(str(contract(tmp_path, launches=40, confidence=0.999)), "--recorded")
    assert status in (1, 2), output
    row = next(line for line in output.splitlines() if line.startswith("bandwidth"))
    assert "unknown" in row
    assert "to be measured" in row or "not measured" in row


def test_the_link_between_two_nodes_is_measured(tmp_path, monkeypatch):
    """Two nodes on this machine; on a busy one its launches are disturbed, and the link is unknown."""
    for name, folder in (("BUILD", tmp_path / "build"), ("TOOLS", own_code.TOOLS)):
        monkeypatch.setenv(f"PLUMB_{name}", str(folder))
    clause = {**acceptance.LINKS, "stack": "mpich", "at_least": 1e-6, "share": 1.0, "launches": 2, "confidence": 0.75}
    file = tmp_path / "contract.yaml"
    file.write_text(yaml.safe_dump(acceptance.contract(clause, nodes="plumb-n[1-2]")))
    with two_nodes.site_over(tmp_path) as place:
        done = place.plumb("accept", str(file), "--output", str(tmp_path / "found.json"))
    assert done.returncode in (0, 2), done.stdout + done.stderr
    (found,) = json.loads((tmp_path / "found.json").read_text())["clauses"]
    assert found["verdict"] == "pass" or "plumb-n1 – plumb-n2 (2 launches disturbed)" in found["reason"], found
    records = [item for sessions in (tmp_path / "results").rglob("*.jsonl") for item in store.read(sessions)]
    assert isinstance(records[0], Record)
    links = {samples.node_link(item) for item in records[0].launches[0].measurements}
    assert links - {None} == {"plumb-n1 – plumb-n2"}
