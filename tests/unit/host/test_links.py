"""PCIe links from a sysfs that is made up here: what they are, what they could be, what is wrong with them."""

from pathlib import Path

import pytest

from plumbline.base import paths
from plumbline.host import devices, machine, provenance
from plumbline.site.nodes import findings

GPU, NIC, NVME, BRIDGE, SOUND = "0x030200", "0x020700", "0x010802", "0x060400", "0x040300"
#: (speed now, width now, speed at best, width at best), as the kernel writes them
FULL = ("16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16")


def put(folder: Path, kind: str, link: tuple[str, str, str, str] | None) -> Path:
    folder.mkdir(parents=True)
    (folder / "class").write_text(f"{kind}\n")
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    for name, text in zip(names, link or (), strict=bool(link)):
        (folder / name).write_text(f"{text}\n")
    return folder


def host(root: Path, chain: list[tuple[str, str, tuple[str, str, str, str] | None]]) -> Path:
    """A host bridge and below it each of ``chain`` below the one before: (address, class, link)."""
    folder = root / "sys/devices/pci0000:00"
    listed = root / "sys/bus/pci/devices"
    listed.mkdir(parents=True, exist_ok=True)
    for address, kind, link in chain:
        folder = put(folder / address, kind, link)
        (listed / address).symlink_to(folder)
    return root


def test_a_link_at_its_best(tmp_path):
    root = host(tmp_path, [("0000:00:01.0", BRIDGE, FULL), ("0000:01:00.0", GPU, FULL)])
    (link,) = devices.pci_links(root).values()
    assert (link.address, str(link), link.fault) == ("0000:01:00.0", "PCIe 16 GT/s x16", False)
    assert provenance.collect(root)["pci_links"] == {"0000:01:00.0": "PCIe 16 GT/s x16"}


@pytest.mark.parametrize(("kind", "now", "shown", "fault"), [
    (GPU, ("16.0 GT/s PCIe", "8"), "PCIe 16 GT/s x8 of 16 GT/s x16", True),
    (GPU, ("2.5 GT/s PCIe", "16"), "PCIe 2.5 GT/s x16 of 16 GT/s x16 (low at idle)", False),
    (GPU, ("2.5 GT/s PCIe", "8"), "PCIe 2.5 GT/s x8 of 16 GT/s x16", True),
    (NIC, ("8.0 GT/s PCIe", "16"), "PCIe 8 GT/s x16 of 16 GT/s x16", True),
    (NVME, ("8 GT/s", "16"), "PCIe 8 GT/s x16 of 16 GT/s x16", True),
])  # fmt: skip
def test_a_link_that_trained_down(tmp_path, kind, now, shown, fault):
    link = (*now, *FULL[2:])
    root = host(tmp_path, [("0000:00:01.0", BRIDGE, link), ("0000:01:00.0", kind, link)])
    (found,) = devices.pci_links(root).values()
    assert (str(found), found.fault) == (shown, fault)
    (finding,) = findings.examine_links([found])
    assert (finding.name, finding.seen, finding.bad) == ("link of 0000:01:00.0", shown, fault)


def test_a_wide_card_in_a_narrow_slot_is_at_its_best(tmp_path):
    slot = ("16.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "8")
    card = ("16.0 GT/s PCIe", "8", "32.0 GT/s PCIe", "16")
    (found,) = devices.pci_links(host(tmp_path, [("0000:00:01.0", BRIDGE, slot), ("0000:01:00.0", NIC, card)])).values()
    assert (str(found), found.fault) == ("PCIe 16 GT/s x8", False)


def test_the_link_above_a_switch_counts(tmp_path):
    """The switch trained to x4; its own ports and the card are at their best."""
    up = ("16.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "16")
    chain = [("0000:00:01.0", BRIDGE, up), ("0000:01:00.0", BRIDGE, up)]
    chain += [("0000:02:00.0", BRIDGE, FULL), ("0000:03:00.0", GPU, FULL)]
    (found,) = devices.pci_links(host(tmp_path, chain)).values()
    assert (found.address, str(found), found.fault) == ("0000:03:00.0", "PCIe 16 GT/s x4 of 16 GT/s x16", True)


def test_a_fault_counts_before_a_slow_link(tmp_path):
    """A card of one lane below a switch that lost some of its own: x1 is slower, and no fault."""
    up, card = ("16.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "16"), ("2.5 GT/s PCIe", "1", "2.5 GT/s PCIe", "1")
    chain = [("0000:00:01.0", BRIDGE, up), ("0000:01:00.0", BRIDGE, up)]
    chain += [("0000:02:00.0", BRIDGE, FULL), ("0000:03:00.0", NIC, card)]
    (found,) = devices.pci_links(host(tmp_path, chain)).values()
    assert str(found) == "PCIe 16 GT/s x8 of 16 GT/s x16"


@pytest.mark.parametrize(("kind", "link"), [
    (SOUND, FULL),
    (NIC, None),
    (NIC, ("Unknown", "255", "Unknown", "255")),
    (NIC, ("Unknown speed", "0", "16.0 GT/s PCIe", "16")),
    (NIC, ("16.0 GT/s PCIe", "", "16.0 GT/s PCIe", "16")),
])  # fmt: skip
def test_what_is_not_told_is_absent(tmp_path, kind, link):
    root = host(tmp_path, [("0000:00:03.0", kind, link)])
    assert devices.pci_links(root) == {}
    assert "pci_links" not in provenance.collect(root)
    assert devices.pci_links(tmp_path / "nothing") == {}


def kfd(root: Path, links_of: dict[tuple[int, int], int]) -> Path:
    """The files of AMD's driver on a made-up node: a processor (0), GPUs at 03:00.0, 0001:83:00.0 and 84:01.1 (1 to 3).

    Names and order of the lines are those of Linux's kfd_topology.c; ``links_of`` has the kind of each link.
    """
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    for number, (simds, domain, place) in enumerate([(0, 0, 0), (440, 0, 0x0300), (440, 1, 0x8300), (440, 0, 0x8409)]):
        (nodes / str(number)).mkdir(parents=True)
        text = f"cpu_cores_count {0 if simds else 64}\nsimd_count {simds}\nlocation_id {place}\ndomain {domain}\n"
        (nodes / str(number) / "properties").write_text(f"{text}name_of_no_number gfx90a\n")
    for (first, second), kind in links_of.items():
        folder = nodes / str(first) / ("io_links" if first < second else "p2p_links") / str(second)
        folder.mkdir(parents=True)
        (folder / "properties").write_text(
            f"type {kind}\nversion_major 0\nnode_from {first}\nnode_to {second}\nweight 15\n"
        )
    return root


def test_links_between_gpus_are_those_that_the_driver_calls_so(tmp_path):
    root = kfd(tmp_path, {(1, 0): 2, (0, 1): 11, (1, 2): 11, (2, 1): 11, (2, 3): 2, (3, 1): 11})
    first, second, third = "0000:03:00.0", "0001:83:00.0", "0000:84:01.1"
    assert devices.xgmi(root) == {frozenset((first, second)), frozenset((third, first))}
    assert devices.xgmi(tmp_path / "nothing") == frozenset()


def test_such_a_link_stands_in_the_matrix(monkeypatch):
    file = paths.root() / "tests/data/topologies/devices/gpu8-amd-nodes.xml"
    known = devices.load(file)
    a, b = (device.address for device in known.devices[:2])
    found = devices.joined(known, {frozenset((a, b)): "XGMI"})
    assert (found.ways[0][1], found.ways[1][0]) == ("XGMI", "XGMI")
    assert sum(row.count("XGMI") for row in found.ways) == 2
    assert found.ways[0][0] == "X"
    drawn = "\n".join(devices.draw(found, {}, 100))
    assert "XGMI a link between GPUs" in " ".join(drawn.split())


def test_only_this_hosts_matrix_is_asked_of_its_driver(monkeypatch):
    file = paths.root() / "tests/data/topologies/devices/gpu8-amd-nodes.xml"
    stored = devices.load(file)
    pair = frozenset(device.address for device in stored.devices[:2])
    text = devices._binder_document(file)
    monkeypatch.setattr(devices, "xgmi", lambda root: {pair})
    monkeypatch.setattr(devices, "_binder_document", lambda topology: text)
    assert devices.load(file) == stored
    assert devices.load().ways[0][1] == devices.document()["ways"][0][1] == "XGMI"
    assert devices.document(file)["ways"][0][1] == stored.ways[0][1]


def test_the_fabric_that_can_be_used_is_infiniband_with_an_active_port(tmp_path):
    ports = {"mlx5_0/ports/1": ("1: DOWN", "InfiniBand"), "mlx5_0/ports/2": ("4: ACTIVE", "InfiniBand"),
             "mlx5_1/ports/1": ("4: ACTIVE", "Ethernet"), "hfi1_0/ports/1": ("4: ACTIVE", "InfiniBand")}  # fmt: skip
    for port, texts in ports.items():
        folder = tmp_path / "sys/class/infiniband" / port
        folder.mkdir(parents=True)
        for name, text in zip(("state", "link_layer"), texts, strict=True):
            (folder / name).write_text(f"{text}\n")
    assert machine.fabric(tmp_path) == ["mlx5_0"]
