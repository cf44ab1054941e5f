"""Joules of a launch, by counters in a sysfs that is made up here after the kernel's documents."""

import os
import time
from pathlib import Path

import processes
import pytest

from plumbline.host import energy, provenance
from plumbline.host.collector import Reader
from plumbline.measure import ceilings

RANGE = 262143328850


def zone(root: Path, path: str, name: str, microjoules: int, wraps: int = RANGE) -> Path:
    """A zone of powercap, listed where the kernel lists it: all zones side by side, a package's below it too."""
    folder = root / "sys/devices/virtual/powercap/intel-rapl" / path
    folder.mkdir(parents=True)
    for file, text in (("name", name), ("energy_uj", microjoules), ("max_energy_range_uj", wraps)):
        (folder / file).write_text(f"{text}\n")
    listed = root / "sys/class/powercap"
    listed.mkdir(parents=True, exist_ok=True)
    (listed / folder.name).symlink_to(folder)
    return folder


def two_packages(root: Path) -> dict[str, Path]:
    return {
        "package-0": zone(root, "intel-rapl:0", "package-0", 1_000_000),
        "core": zone(root, "intel-rapl:0/intel-rapl:0:0", "core", 10),
        "dram of package-0": zone(root, "intel-rapl:0/intel-rapl:0:1", "dram", 5_000_000),
        "package-1": zone(root, "intel-rapl:1", "package-1", RANGE - 500_000),
        "psys": zone(root, "intel-rapl:2", "psys", 77),
        "mmio": zone(root, "intel-rapl-mmio:0", "package-0", 1_000_000),
    }


def add(folder: Path, joules: float, wraps: int = RANGE) -> None:
    file = folder / "energy_uj"
    file.write_text(f"{(int(file.read_text()) + int(joules * 1e6)) % wraps}\n")


def spent(root: Path, wall_s: float, **joules: float) -> dict[str, float] | None:
    zones = two_packages(root)
    meter = energy.find(root)
    first = energy.Reading(meter, meter.read(), 100.0)
    for name, value in joules.items():
        add(zones[name.replace("_", "-").replace("dram", "dram of package-0")], value)
    return first.until(energy.Reading(meter, meter.read(), 100.0 + wall_s))


def test_packages_and_their_memory_are_counted_once(tmp_path):
    found = spent(tmp_path, 1.0, package_0=120, dram=8.5, core=70, psys=200, mmio=120)
    assert found == {"package-0": 120, "dram of package-0": 8.5, "package-1": 0}


def test_a_counter_that_wrapped_once(tmp_path):
    found = spent(tmp_path, 1.0, package_1=120)
    assert found is not None
    assert found["package-1"] == pytest.approx(120)


def test_one_that_may_have_wrapped_twice_tells_nothing(tmp_path):
    """262 kJ at 2 kW: 131 s."""
    assert spent(tmp_path / "short", 130.0, package_0=1) is not None
    assert spent(tmp_path / "long", 132.0, package_0=1) is None


def test_sockets_of_amd_energy(tmp_path):
    folder = tmp_path / "sys/class/hwmon/hwmon3"
    folder.mkdir(parents=True)
    (folder / "name").write_text("amd_energy\n")
    for number, (label, microjoules) in enumerate([("Ecore000", 5), ("Esocket0", 9_000_000), ("Esocket1", 0)], 1):
        (folder / f"energy{number}_label").write_text(f"{label}\n")
        (folder / f"energy{number}_input").write_text(f"{microjoules}\n")
    other = tmp_path / "sys/class/hwmon/hwmon1"
    other.mkdir()
    (other / "name").write_text("k10temp\n")
    meter = energy.find(tmp_path)
    assert str(meter) == "amd_energy: socket 0, socket 1"
    assert provenance.collect(tmp_path)["energy"] == "amd_energy: socket 0, socket 1"
    first = energy.Reading(meter, meter.read(), 0.0)
    (folder / "energy2_input").write_text("39000000\n")
    assert first.until(energy.Reading(meter, meter.read(), 1e6)) == {"socket 0": 30.0, "socket 1": 0.0}
    (folder / "energy2_input").write_text("8\n")  # the driver was loaded again
    assert first.until(energy.Reading(meter, meter.read(), 1e6)) is None


@pytest.mark.parametrize("broken", ["energy_uj", "max_energy_range_uj"])
def test_a_counter_that_is_no_number_is_named(tmp_path, broken):
    (two_packages(tmp_path)["package-1"] / broken).write_text("\n")
    assert energy.find(tmp_path).missing.startswith("powercap: invalid literal")


def test_a_counter_that_vanishes_leaves_the_launch_without_energy(tmp_path):
    zones = two_packages(tmp_path)
    meter = energy.find(tmp_path)
    first = energy.Reading.now(meter)
    assert first.until(energy.Reading.now(meter)) == {"package-0": 0, "dram of package-0": 0, "package-1": 0}
    (zones["package-0"] / "energy_uj").unlink()
    assert first.until(energy.Reading.now(meter)) is None
    assert energy.Reading.now(meter).until(first) is None


def test_counters_for_root_alone_are_named(tmp_path, monkeypatch):
    """As since Linux 5.10: anyone may see that they are there."""
    (two_packages(tmp_path)["package-0"] / "energy_uj").chmod(0o400)

    def refuse(file: Path, **_: str) -> str:
        if file.name == "energy_uj":
            raise PermissionError(13, os.strerror(13), str(file))
        return "".join(open(file))  # noqa: PTH123

    monkeypatch.setattr(Path, "read_text", refuse)
    meter = energy.find(tmp_path)
    assert str(meter).startswith("not read: only root may read /")
    assert str(meter).endswith("intel-rapl:0/energy_uj")
    assert meter.counters == ()


def test_a_host_without_counters_says_so_once(tmp_path):
    meter = energy.find(tmp_path)
    assert str(meter) == f"not read: {meter.missing}"
    first = energy.Reading.now(meter)
    assert first.until(energy.Reading.now(meter)) is None
    assert provenance.collect(tmp_path)["energy"] == str(meter)


def test_idle_power_is_joules_over_the_time_slept(tmp_path, monkeypatch):
    zones = two_packages(tmp_path)
    clock = [100.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        add(zones["package-0"], 300)
        add(zones["dram of package-0"], 50)

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    assert energy.idle(energy.find(tmp_path), 10.0) == pytest.approx(35.0)
    meter = energy.find(tmp_path)
    (zones["package-1"] / "energy_uj").unlink()
    assert energy.idle(meter, 10.0) is None


@pytest.mark.parametrize("there", [True, False])
def test_idle_power_or_why_it_is_not_known_is_measured_with_the_ceilings(tmp_path, monkeypatch, there):
    if there:
        two_packages(tmp_path)
    meter = energy.find(tmp_path)
    monkeypatch.setattr(energy, "find", lambda: meter)
    monkeypatch.setattr(energy, "idle", lambda meter, seconds: 61.239)
    assert ceilings._idle() == ((61.24, None) if there else (None, meter.missing))


def perf(root: Path, cpumask: str = "0", unit: str = "Joules", event: str = "event=0x00", dies: int = 1) -> Path:
    """The device ``power``, with the kernel's clock of a CPU in place of its energy: a nanosecond is a nanojoule."""
    device = root / "sys/bus/event_source/devices/power"
    (device / "events").mkdir(parents=True)
    files = {"type": "1", "cpumask": cpumask, "events/energy-pkg": event, "events/energy-cores": "event=0x00"}
    files |= {"events/energy-pkg.scale": "1.000000000000e-09", "events/energy-pkg.unit": unit}
    for name, text in files.items():
        (device / name).write_text(f"{text}\n")
    for cpu in range(2):
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{cpu // dies}\n")
        (folder / "die_id").write_text(f"{cpu % dies}\n")
    return device


def may_count() -> bool:
    return os.geteuid() == 0 or int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) <= 0


@pytest.mark.skipif(not may_count(), reason="kernel.perf_event_paranoid is above 0, and this is not root")
class TestPerf:
    """Events of the kernel that the user may ask for."""

    def test_events_are_read_where_powercap_is_for_root_alone(self, tmp_path, monkeypatch):
        device = perf(tmp_path)
        (device / "events/energy-ram").write_text("event=0x00\n")
        (device / "events/energy-ram.scale").write_text("2e-9\n")
        (device / "events/energy-ram.unit").write_text("Joules\n")

        def refuse(read: Reader) -> list[energy.Counter]:
            raise PermissionError(13, os.strerror(13), str(read.root / "energy_uj"))

        monkeypatch.setattr(energy, "_powercap", refuse)
        meter = energy.find(tmp_path)
        assert str(meter) == "perf: package-0, dram of package-0"

        def scales_are_applied() -> bool:
            first = energy.Reading.now(meter)
            time.sleep(0.1)
            joules = first.until(energy.Reading.now(meter))
            assert joules is not None
            assert joules["package-0"] > 0
            return joules["dram of package-0"] == pytest.approx(2 * joules["package-0"], rel=0.05)

        processes.wait_until(scales_are_applied, "other work never comes between two counters")

    @pytest.mark.parametrize(("dies", "names"), [(1, "package-0, package-1"), (2, "package-0-die-0, package-0-die-1")])
    def test_every_package_and_every_die_has_a_name_of_its_own(self, tmp_path, dies, names):
        if (os.cpu_count() or 1) < 2:
            pytest.skip("this machine has one CPU")
        perf(tmp_path, cpumask="0-1", dies=dies)
        assert str(energy.find(tmp_path)) == f"perf: {names}"

    def test_files_are_closed_when_nobody_reads_any_more(self, tmp_path):
        perf(tmp_path)
        before = len(list(Path("/proc/self/fd").iterdir()))
        meter = energy.find(tmp_path)
        assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
        del meter
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("change", [{"unit": "Watts"}, {"event": "umask=1"}])
def test_an_event_that_is_not_as_documented_is_named(tmp_path, change):
    perf(tmp_path, **change)
    assert "is not an event in joules" in energy.find(tmp_path).missing


def test_what_both_powercap_and_perf_refuse_is_said(tmp_path, monkeypatch):
    perf(tmp_path)

    def refuse(file: str) -> list[energy.Counter]:
        raise PermissionError(13, "Permission denied", *([file] if file else []))

    monkeypatch.setattr(energy, "_powercap", lambda root: refuse("/sys/energy_uj"))
    monkeypatch.setattr(energy, "_perf", lambda root: refuse(""))
    assert energy.find(tmp_path).missing == "only root may read /sys/energy_uj; perf: Permission denied"
