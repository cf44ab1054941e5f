# ruff: noqa: UP006, UP022, UP035, UP045
"""Facts of the node this runs on, as ``DIR/HOST.json``, and its topology as ``DIR/HOST.xml``.

    python3 collector.py --output DIR [--topology-program plumb-bind]

It runs alone on a compute node: standard library only, Python 3.6 syntax, no root. Nothing is guessed: what cannot be
read is null and named in ``missing`` with the reason. Schema of the file: ``plumbline/base/schemas/node.json``.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple

#: seconds that a helper program may take
PATIENCE = 20
#: words by which the firmware of virtual machines calls its vendor or product; Microsoft's is "Virtual Machine"
VIRTUAL = (
    *("qemu", "kvm", "vmware", "virtualbox", "innotek", "xen", "amazon ec2", "google", "bochs", "hyper-v"),
    "virtual",
)
CPUS = "sys/devices/system/cpu"
FIRMWARE = ("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name")
#: flag of /proc/cpuinfo -> bits of a vector register, widest first; SVE's width is not a flag, so it gives no fact
VECTORS = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("sve", None), ("asimd", 128))
#: vector instructions that compilers make use of by themselves
SIMD = {
    *("sse2", "sse4_2", "avx", "avx2", "avx_vnni", "fma", "fma4", "xop", "avx512f", "avx512cd", "avx512dq"),
    *("avx512bw", "avx512vl", "avx512ifma", "avx512vbmi", "avx512_bf16", "avx512_bitalg", "avx512_fp16"),
    *("avx512_vbmi2", "avx512_vnni", "avx512_vpopcntdq"),
    *("asimd", "asimddp", "asimdhp", "asimdrdm", "bf16", "i8mm", "sve", "sve2"),
}
#: lines of ``scontrol show config`` that decide where a job's processes may run
SLURM = ("TaskPlugin", "TaskPluginParam", "SelectType", "SelectTypeParameters", "ProctrackType", "MpiDefault")
CGROUP_CONF = ("/etc/slurm/cgroup.conf", "/run/slurm/conf/cgroup.conf", "/etc/slurm-llnl/cgroup.conf")
TOOLS = ("gcc", "g++", "gfortran", "clang", "icx", "cmake", "make", "python3", "numactl", "lstopo-no-graphics", "mpicc")


def _first(pattern: str, text: Optional[str]) -> Optional[str]:
    """The group of the first match in ``text``, whose lines ``^`` and ``$`` bound."""
    match = re.search(pattern, text or "", re.MULTILINE)
    return match.group(1) if match else None


class Reader:
    """Small files of /proc and /sys below a root folder; an unreadable one is None, its reason in ``failures``."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self.failures = {}  # type: Dict[str, str]

    def content(self, path: str) -> str:
        """The file's content without surrounding white space; raises OSError if it cannot be read."""
        return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()

    def text(self, path: str) -> Optional[str]:
        """The file's content; None if it is empty or cannot be read."""
        try:
            return self.content(path) or None
        except OSError as error:
            self.failures[path] = error.strerror or str(error)
            return None

    def count(self, path: str) -> int:
        """The file's content as a whole number; raises OSError or ValueError without one."""
        return int(self.content(path))

    def names(self, path: str, pattern: str = "*") -> List[str]:
        """Paths below the root that match, sorted as people count."""
        matching = [str(file.relative_to(self.root)) for file in (self.root / path).glob(pattern)]
        return sorted(matching, key=lambda name: [(len(part), part) for part in name.split("/")])

    def number(self, path: str) -> Optional[int]:
        """The file's content as a whole number."""
        text = self.text(path) or ""
        return int(text) if re.match(r"-?\d+$", text) else None

    def numbers(self, paths: Iterable[str]) -> List[int]:
        """The numbers in those of the files that have one."""
        return [number for number in map(self.number, paths) if number is not None]

    def flag(self, path: str) -> Optional[bool]:
        """Whether the number in the file is not 0; None without a number."""
        value = self.number(path)
        return None if value is None else value != 0

    def selected(self, path: str) -> Optional[str]:
        """The choice in brackets of files like ``always [madvise] never``."""
        words = (self.text(path) or "").split()
        return next((word.strip("[]") for word in words if word.startswith("[")), None)

    def same(self, folder: str, pattern: str) -> Optional[str]:
        """The common content of all files that match, or all different ones joined by commas."""
        contents = {self.text(name) for name in self.names(folder, pattern)} - {None}
        return ", ".join(sorted(str(text) for text in contents)) or None

    def joined(self, *paths: str) -> Optional[str]:
        """The contents of the files that have one, with blanks between them."""
        return " ".join(text for text in map(self.text, paths) if text) or None

    def clocks(self, cpus: Iterable[int]) -> "Dict[int, int]":
        """The clock now, in kHz, of those of ``cpus`` of which the kernel tells it."""
        return {cpu: khz for cpu in cpus for khz in self.numbers([f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq"])}

    def cpuinfo(self, key: str) -> Optional[str]:
        """The first value of ``key`` in /proc/cpuinfo."""
        value = _first(rf"^{key}[ \t]*:(.*)$", self.text("proc/cpuinfo"))
        return value and value.strip()

    def flags(self) -> "set[str]":
        """The features of the processor, in the kernel's words."""
        return set((self.cpuinfo("flags") or self.cpuinfo("Features") or "").split())

    def virtual(self) -> Optional[str]:
        """Name of the hypervisor, ``yes`` if only the CPU flag says so, None on bare metal."""
        kind = self.text("sys/hypervisor/type")
        if kind:
            return kind
        flags = self.cpuinfo("flags")
        if flags is not None and "hypervisor" not in flags.split():
            return None  # x86: the firmware of whole machines that are rented may have the names of virtual ones
        firmware = (self.joined(*FIRMWARE) or "").lower()
        return next((name for name in VIRTUAL if name in firmware), "yes" if flags else None)

    def is_virtual(self) -> bool:
        """Whether this is a virtual machine; true also where that is unknown."""
        known = self.text("proc/cpuinfo") and all(self.text(name) for name in FIRMWARE)
        return not known or self.virtual() is not None

    def turbo(self) -> Optional[bool]:
        """Whether the clock may rise above nominal (intel_pstate or the generic boost switch)."""
        no_turbo = self.flag(CPUS + "/intel_pstate/no_turbo")
        return self.flag(CPUS + "/cpufreq/boost") if no_turbo is None else not no_turbo

    def smt(self) -> Optional[bool]:
        """Whether two hardware threads share a core."""
        return self.flag(CPUS + "/smt/active")

    def load(self) -> Optional[List[float]]:
        """1, 5 and 15 minute load."""
        words = re.findall(r"\d+\.\d+", self.text("proc/loadavg") or "")
        return [float(word) for word in words] if len(words) == 3 else None

    def memory(self, path: str = "proc/meminfo") -> Optional[int]:
        """Bytes of memory the kernel manages: of the host, or in a NUMA node's own ``meminfo``."""
        match = re.search(r"MemTotal:\s*(\d+) kB", self.text(path) or "")
        return int(match.group(1)) * 1024 if match else None

    def size(self, folder: str) -> Optional[int]:
        """Bytes that the file system of ``folder`` has in all."""
        try:
            status = os.statvfs(str(self.root / folder))
        except OSError as error:
            self.failures[folder] = error.strerror or str(error)
            return None
        return status.f_blocks * status.f_frsize

    def ptrace_scope(self) -> Optional[int]:
        """Yama's restriction of ptrace among processes of one user; 0, none, also in a kernel without Yama."""
        folder = self.root / "proc/sys/kernel"
        without = folder.is_dir() and not (folder / "yama").is_dir()
        return 0 if without else self.number("proc/sys/kernel/yama/ptrace_scope")

    def opens(self, device: str) -> Optional[bool]:
        """Whether this user may read and write a device file; None without a folder of device files."""
        file = self.root / device
        return os.access(str(file), os.R_OK | os.W_OK) if file.parent.is_dir() else None

    def allowed(self) -> Optional[str]:
        """OS indices of the CPUs that this process may use (cgroup and affinity together), such as ``0-3,8``."""
        return _first(r"^Cpus_allowed_list:\s*(\S+)", self.text("proc/self/status"))

    def cgroup(self) -> Dict[str, Any]:
        """CPU quota (in CPUs), memory limit (bytes) and allowed CPUs of this process, by cgroup version 1 or 2."""
        quotas = []  # type: List[float]
        limits = []  # type: List[int]
        for folder in self._cgroup_folders():
            # quota and period; the quota is "max" (version 2) or -1 without a limit
            version_2 = (self.text(folder + "/cpu.max") or "").split()
            version_1 = [self.text(f"{folder}/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
            pairs = [pair for pair in (version_2, version_1) if len(pair) == 2 and all(map(str.isdigit, pair))]
            quotas += [int(quota) / int(period) for quota, period in pairs]
            sizes = self.numbers([folder + "/memory.max", folder + "/memory.limit_in_bytes"])
            limits += [size for size in sizes if size < 1 << 60]
        return {
            "cpu_quota": min(quotas, default=None),
            "memory_limit_bytes": min(limits, default=None),
            "cpus_allowed": self.allowed(),
        }

    def _cgroup_folders(self) -> List[str]:
        """The folder of this process in every hierarchy, and its ancestors: a limit of a parent binds too."""
        folders = []  # type: List[str]
        for line in (self.text("proc/self/cgroup") or "").splitlines():
            controllers, _, path = line.partition(":")[2].partition(":")
            named = controllers and not controllers.startswith("name=")
            base = "sys/fs/cgroup/" + controllers if named else "sys/fs/cgroup"
            parts = [part for part in path.split("/") if part and part != ".."]
            folders += ["/".join([base, *parts[:length]]) for length in range(len(parts) + 1)]
        return folders


def parse_dmidecode(text: str) -> Dict[str, Any]:
    """Facts of the memory channels from the output of ``dmidecode --type 17``.

    Each populated module has lines such as ``Locator: P0 CHANNEL A``, ``Configured Memory Speed: 4800 MT/s`` and
    ``Data Width: 64 bits``. A fact is absent unless all modules have the same; the channels per package are absent
    unless all locators name socket and channel, and all sockets have as many.
    """
    rates, widths, channels = set(), set(), set()
    for block in re.split(r"\n\s*\n", text):
        fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}
        size = fields.get("Size", "")
        if "Memory Device" not in block or not size or size.startswith(("No Module", "0 ", "Unknown")):
            continue
        rates.add(fields.get("Configured Memory Speed") or fields.get("Configured Clock Speed", ""))
        widths.add(fields.get("Data Width", ""))
        places = "{} {}".format(fields.get("Locator", ""), fields.get("Bank Locator", ""))
        named = re.search(
            r"(?:P|CPU|PROC|NODE)\s*_?(\d+)[ _-]*(?:CHANNEL|CH|DIMM)?[ _-]*([A-Z])\d*", places, re.IGNORECASE
        )
        channels.add((named.group(1), named.group(2).upper()) if named else None)
    facts = {}  # type: Dict[str, Any]
    rate = re.match(r"(\d+) MT/s$", rates.pop()) if len(rates) == 1 else None
    width = re.match(r"(\d+) bits$", widths.pop()) if len(widths) == 1 else None
    if rate and int(rate.group(1)):
        facts["memory_mts"] = int(rate.group(1))
    if width and int(width.group(1)) >= 8:
        facts["memory_bytes_per_transfer"] = int(width.group(1)) // 8
    per_socket = set(Counter(item[0] for item in channels if item).values())
    if len(per_socket) == 1 and None not in channels:
        facts["memory_channels_per_package"] = per_socket.pop()
    return facts


def _answer(command: List[str]) -> Tuple[Optional[str], str]:
    """Standard output of a program, or None and the reason. It looks at this machine, whatever HWLOC_XMLFILE names."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("HWLOC_")}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=PATIENCE,
            check=False, env=around,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{command[0]}: {error}"
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return None, lines[-1] if lines else f"{command[0]}: exit status {done.returncode}"
    return done.stdout.decode("utf-8", "replace"), ""


# --- topology


def topology(program: Optional[str] = None) -> Tuple[Optional[str], str]:
    """This machine as hwloc XML without serial numbers, or None and the reason.

    By ``program`` (``plumb-bind``) if given, else by ``lstopo-no-graphics``, else by ``lstopo``.
    """
    reason = "neither plumb-bind nor lstopo-no-graphics is there"
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "topology.xml"
        commands = [[program, "--export-topology", str(file)]] if program else []
        programs = map(shutil.which, ("lstopo-no-graphics", "lstopo"))
        commands += [[path, "--of", "xml", "--force", str(file)] for path in programs if path]
        for command in commands:
            done, reason = _answer(command)
            text = Reader().text(str(file)) or ""
            if done is not None and "<topology" in text:
                return without_serials(text + "\n"), ""
            reason = reason or f"{command[0]}: no topology was written"
    return None, reason


def without_serials(xml: str) -> str:
    """``xml`` without serial numbers and UUIDs, which hwloc adds for root and which no site wants to publish."""
    return re.sub(r"^ *<info name=\"DMI\w*(?:Serial|UUID|AssetTag)\"[^>]*/>\n", "", xml, flags=re.MULTILINE)


# --- the node


class Node:
    """Collects the facts of one node; ``missing`` has the facts that could not be read, with the reasons."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.missing = {}  # type: Dict[str, str]

    def known(self, key: str, value: Any, *paths: str) -> Any:
        """``value``; if it is None, ``key`` is noted as missing with the reason of the files it comes from."""
        if value is None:
            reasons = [f"/{path}: {self._why(path)}" for path in paths]
            self.missing[key] = "; ".join(reasons) or "not reported"
        return value

    def _why(self, path: str) -> str:
        there = (self.reader.root / path).exists()
        return self.reader.failures.get(path) or ("does not say" if there else "is not there")

    def cpu(self) -> Dict[str, Any]:
        """Model, microcode and vector flags."""
        read = self.reader
        return {
            "model": self.known("cpu.model", read.cpuinfo("model name") or read.cpuinfo("CPU part"), "proc/cpuinfo"),
            "microcode": self.known("cpu.microcode", read.cpuinfo("microcode"), "proc/cpuinfo"),
            "simd": sorted(read.flags() & SIMD),
        }

    def counts(self) -> Dict[str, Any]:
        """Packages, cores and hardware threads that are online."""
        threads = self.reader.names(CPUS, "cpu[0-9]*/topology")
        packages = {self.reader.text(folder + "/physical_package_id") for folder in threads}
        cores = {self.reader.text(folder + "/thread_siblings_list") or folder for folder in threads}
        counts = {"packages": len(packages), "cores": len(cores), "threads": len(threads)}
        return {key: self.known(key, value or None, CPUS) for key, value in counts.items()}

    def numa(self) -> List[Dict[str, Any]]:
        """NUMA nodes by OS index: CPUs, memory in MiB, distances to all nodes in their order."""
        nodes = []
        for folder in self.reader.names("sys/devices/system/node", "node[0-9]*"):
            size = self.reader.memory(folder + "/meminfo")
            nodes.append({
                "node": int(folder.rsplit("node", 1)[1]),
                "cpus": self.reader.text(folder + "/cpulist") or "",
                "memory_mib": None if size is None else size >> 20,
                "distances": [int(word) for word in (self.reader.text(folder + "/distance") or "").split()],
            })  # fmt: skip
        if not nodes:
            self.missing["numa"] = "/sys/devices/system/node: no NUMA node is listed"
        return nodes

    def numa_node(self, device: str) -> Optional[int]:
        """The NUMA node of a device; the kernel says -1 for one that is near to no node in particular."""
        number = self.reader.number(device + "/numa_node")
        return number if number is not None and number >= 0 else None

    def nics(self) -> List[Dict[str, Any]]:
        """Network interfaces but the loopback; ``physical`` ones have a device below them."""
        folders = [folder for folder in self.reader.names("sys/class/net") if not folder.endswith("/lo")]
        return [self._nic(folder) for folder in folders if (self.reader.root / folder).is_dir()]

    def _nic(self, folder: str) -> Dict[str, Any]:
        device, speed = self.reader.root / folder / "device", self.reader.number(folder + "/speed")
        driver = device / "driver"
        return {
            "name": folder.rsplit("/", 1)[1],
            "physical": device.exists(),
            "driver": driver.resolve().name if driver.is_symlink() else None,
            "speed_mbit": speed if speed and speed > 0 else None,
            "state": self.reader.text(folder + "/operstate"),
            "numa": self.numa_node(folder + "/device"),
        }

    def hcas(self) -> List[Dict[str, Any]]:
        """InfiniBand, RoCE and Omni-Path adapters with their ports."""
        return [
            {
                "name": folder.rsplit("/", 1)[1],
                "type": self.reader.text(folder + "/hca_type"),
                "numa": self.numa_node(folder + "/device"),
                "ports": [self._port(port) for port in self.reader.names(folder + "/ports", "[0-9]*")],
            }
            for folder in self.reader.names("sys/class/infiniband")
        ]

    def _port(self, folder: str) -> Dict[str, Any]:
        rate = _first(r"\A([\d.]+) Gb/sec", self.reader.text(folder + "/rate"))  # such as 100 Gb/sec (4X EDR)
        return {
            "port": int(folder.rsplit("/", 1)[1]),
            "state": (self.reader.text(folder + "/state") or "").split(": ")[-1] or None,
            "rate_gbit": rate and float(rate),
            "link_layer": self.reader.text(folder + "/link_layer"),
        }

    def gpus(self) -> List[Dict[str, Any]]:
        """PCI display and 3D controllers (class 0x03…)."""
        classes = {
            folder: self.reader.text(folder + "/class") or "" for folder in self.reader.names("sys/bus/pci/devices")
        }
        return [
            {
                "address": folder.rsplit("/", 1)[1],
                "class": kind[2:6],
                "vendor": self.reader.text(folder + "/vendor"),
                "device": self.reader.text(folder + "/device"),
                "numa": self.numa_node(folder),
            }
            for folder, kind in classes.items()
            if kind.startswith("0x03")
        ]

    def gpu_driver(self) -> Optional[str]:
        """Name and version of the kernel's module for GPUs; None where none with a version of its own is loaded."""
        text = self.reader.text
        versions = (
            ("nvidia", text("sys/module/nvidia/version")),
            ("amdgpu", text("sys/module/amdgpu/version")),
            ("nvidia", _first(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text("proc/driver/nvidia/version"))),
        )
        return next((module + " " + version for module, version in versions if version), None)

    def knobs(self) -> Dict[str, Any]:
        """Settings of the kernel that change figures."""
        read, frequency = self.reader, CPUS + "/cpu0/cpufreq"
        thp = "sys/kernel/mm/transparent_hugepage/"
        knobs = {}  # type: Dict[str, Any]
        for key, value, path in (
            ("governor", read.same(CPUS, "cpu[0-9]*/cpufreq/scaling_governor"), frequency),
            ("frequency_driver", read.same(CPUS, "cpu[0-9]*/cpufreq/scaling_driver"), frequency),
            ("turbo", read.turbo(), CPUS + "/cpufreq/boost"),
            ("thp", read.selected(thp + "enabled"), thp + "enabled"),
            ("thp_defrag", read.selected(thp + "defrag"), thp + "defrag"),
            ("numa_balancing", read.flag("proc/sys/kernel/numa_balancing"), "proc/sys/kernel/numa_balancing"),
            ("zone_reclaim", read.number("proc/sys/vm/zone_reclaim_mode"), "proc/sys/vm/zone_reclaim_mode"),
            ("swappiness", read.number("proc/sys/vm/swappiness"), "proc/sys/vm/swappiness"),
            ("perf_event_paranoid", read.number("proc/sys/kernel/perf_event_paranoid"),
             "proc/sys/kernel/perf_event_paranoid"),
            ("clocksource", read.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
             "sys/devices/system/clocksource/clocksource0/current_clocksource"),
            ("shm_bytes", read.size("dev/shm"), "dev/shm"),
            ("ptrace_scope", read.ptrace_scope(), "proc/sys/kernel/yama/ptrace_scope"),
            ("huge_pages", read.number("proc/sys/vm/nr_hugepages"), "proc/sys/vm/nr_hugepages"),
            ("xpmem", read.opens("dev/xpmem"), "dev/xpmem"),
            ("knem", read.opens("dev/knem"), "dev/knem"),
        ):  # fmt: skip
            knobs[key] = self.known("knobs." + key, value, path)
        soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        knobs["memlock_bytes"] = "unlimited" if soft == resource.RLIM_INFINITY else soft
        return knobs

    def mount(self, folder: Path) -> Dict[str, Any]:
        """The mount that ``folder`` (the shared one) lies on: the longest mount point above it."""
        place = str(folder.resolve())
        mounts = [line.split() for line in (self.reader.text("proc/self/mounts") or "").splitlines()]
        points = {point.replace("\\040", " "): (kind, source) for source, point, kind, *_ in mounts}  # the last counts
        above = [point for point in points if place == point or place.startswith(point.rstrip("/") + "/")]
        if not above:
            self.missing["mount"] = f"/proc/self/mounts names no mount for {place}"
            return {}
        path = max(above, key=len)
        return {"path": path, "type": points[path][0], "source": points[path][1]}

    def tools(self) -> Dict[str, Dict[str, str]]:
        """Compilers and tools on PATH with the first line of their ``--version``."""
        versions = {}
        there = {name: shutil.which(name) for name in TOOLS}
        for name, path in ((name, path) for name, path in there.items() if path):
            text, reason = _answer([path, "--version"])
            lines = (text or "").strip().splitlines()
            versions[name] = {"path": path, "version": lines[0][:200] if lines else ""}
            if not lines:
                self.missing[f"tools.{name}.version"] = reason or "nothing was printed"
        return versions

    def scheduler(self) -> Dict[str, Any]:
        """The settings that decide about binding: Slurm's, and those of the environment."""
        settings = {}
        if "SLURM_STEP_ID" in os.environ:
            self.missing["scheduler.SLURM_CPU_BIND"] = "set by the srun that started the collector"
        elif "SLURM_CPU_BIND" in os.environ:
            settings["SLURM_CPU_BIND"] = os.environ["SLURM_CPU_BIND"]
        if shutil.which("scontrol") is None:
            self.missing["scheduler"] = "scontrol is not on PATH"
        elif os.environ.get("SLURM_PROCID", "0") != "0":
            self.missing["scheduler"] = "asked on the first node of the job only, to spare the controller"
        else:
            text, reason = _answer(["scontrol", "show", "config"])
            if text is None:
                self.missing["scheduler"] = reason
            known = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", text or "", re.MULTILINE))
            settings.update({key: known[key] for key in SLURM if key in known})
        constrain = next((text for text in map(self.reader.text, (path[1:] for path in CGROUP_CONF)) if text), None)
        if constrain is None:
            self.missing["scheduler.ConstrainCores"] = "none of {} can be read".format(", ".join(CGROUP_CONF))
        else:
            line = re.search(r"^\s*ConstrainCores\s*=\s*(\w+)", constrain, re.MULTILINE | re.IGNORECASE)
            settings["ConstrainCores"] = line.group(1) if line else "no"
        return settings

    def no_memory_tables(self) -> Optional[str]:
        """Why the firmware's memory tables cannot be read here; None if they can.

        They need root, ``dmidecode`` and real hardware: the tables of a virtual machine describe nothing.
        """
        if os.geteuid() != 0:
            return "only root may read the firmware's tables (dmidecode)"
        if shutil.which("dmidecode") is None:
            return "dmidecode is not installed"
        return "a virtual machine's firmware tables describe nothing" if self.reader.is_virtual() else None

    def core_ghz(self) -> Optional[float]:
        """Highest clock, boost included. The driver acpi-cpufreq leaves boost out: believed where boost is off."""
        read = self.reader
        drivers = read.same(CPUS, "cpu[0-9]*/cpufreq/scaling_driver") or ""
        if "acpi-cpufreq" in drivers and read.number(CPUS + "/cpufreq/boost") != 0:
            return None
        clocks = read.numbers(read.names(CPUS, "cpu[0-9]*/cpufreq/cpuinfo_max_freq"))
        return max(clocks, default=0) / 1e6 or None

    def link_gbit(self) -> Optional[float]:
        """Rate of all active links together: of the InfiniBand ports, or else of the network cards.

        None if one of them does not report its rate: the sum of the others would be too low a limit.
        """
        ports = [port for adapter in self.hcas() for port in adapter["ports"] if port["state"] == "ACTIVE"]
        cards = [card["speed_mbit"] for card in self.nics() if card["physical"] and card["state"] == "up"]
        rates = [port["rate_gbit"] for port in ports] or [speed and speed / 1000 for speed in cards]
        return sum(rates) if rates and all(rates) else None

    def limits(self) -> Dict[str, Any]:
        """Facts for physical limits; one that the host does not report is absent, and missing if every site wants it.

        How many multiply-add units a core has is written nowhere on a host: people declare ``fma_units``.
        """
        flags, why = self.reader.flags(), self.no_memory_tables()
        facts = {} if why else parse_dmidecode(_answer(["dmidecode", "--type", "17"])[0] or "")
        why = why or "the firmware's tables do not say it for all modules alike"
        for key, value, reason in (
            ("memory_channels_per_package", facts.get("memory_channels_per_package"), why),
            ("memory_mts", facts.get("memory_mts"), why),
            ("memory_bytes_per_transfer", facts.get("memory_bytes_per_transfer"), why),
            ("core_ghz", self.core_ghz(), "cpufreq does not report the highest clock"),
            ("simd_bits", next((bits for flag, bits in VECTORS if flag in flags), None), "no CPU flag says it"),
            ("link_gbit", self.link_gbit(), "no active link reports its rate"),
        ):
            if value is None:
                self.missing["limits." + key] = reason
            else:
                facts[key] = value
        return facts

    def common(self) -> Dict[str, Any]:
        """The facts that records have too: hardware, kernel, knobs, limits of the cgroup, load."""
        read = self.reader
        return {
            "machine": platform.machine(),
            "kernel": platform.release(),
            "virtual": read.virtual(),
            "smt": self.known("smt", read.smt(), CPUS + "/smt/active"),
            "cpus_online": self.known("cpus_online", read.text(CPUS + "/online")),
            "memory_bytes": self.known("memory_bytes", read.memory(), "proc/meminfo"),
            "cgroup": read.cgroup(),
            "load": self.known("load", read.load(), "proc/loadavg"),
            "knobs": self.knobs(),
        }


def collect(name: str, output: Path, job: Optional[str] = None, root: Path = Path("/")) -> Dict[str, Any]:
    """All facts of this node; the times are taken first, because nodes are compared by them."""
    now, monotonic = time.time(), time.monotonic()
    node = Node(Reader(root))
    distribution = _first(r"^PRETTY_NAME=\"?(.*?)\"?$", node.reader.text("etc/os-release"))
    return {
        "schema": 1,
        "host": name,
        "job": job,
        "time": now,
        "monotonic": monotonic,
        **node.common(),
        "distribution": node.known("distribution", distribution, "etc/os-release"),
        "cpu": node.cpu(),
        **node.counts(),
        "numa": node.numa(),
        "nics": node.nics(),
        "hcas": node.hcas(),
        "gpus": node.gpus(),
        "gpu_driver": node.gpu_driver(),
        "limits": node.limits(),
        "mount": node.mount(output),
        "tools": node.tools(),
        "scheduler": node.scheduler(),
        "missing": node.missing,
    }


def write(file: Path, text: str) -> None:
    """Write ``file`` (mode 0640) in one step: temporary name, fsync, rename."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(str(temporary), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), 0o640)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink()
        raise


def main(argv: Optional[List[str]] = None) -> int:
    """Collect and write; status 2 and one line if the files cannot be written."""
    parser = argparse.ArgumentParser(description="Write the facts of this node to DIR/HOST.json and DIR/HOST.xml.")
    parser.add_argument("--output", required=True, metavar="DIR")
    parser.add_argument("--topology-program", metavar="PROGRAM", help="plumb-bind; default: lstopo")
    parser.add_argument("--host", default=os.environ.get("SLURMD_NODENAME") or socket.gethostname())
    parser.add_argument("--job", help="name of the collection, the same on all its nodes")
    arguments = parser.parse_args(argv)
    if not re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*$", arguments.host):
        parser.error(f"'{arguments.host}' is not a host name")
    output = Path(arguments.output)
    facts = collect(arguments.host, output, arguments.job)
    xml, reason = topology(arguments.topology_program)
    if xml is None:
        facts["missing"]["topology"] = reason
    try:
        output.mkdir(parents=True, exist_ok=True)
        if xml is not None:
            write(output / (arguments.host + ".xml"), xml)
        write(output / (arguments.host + ".json"), json.dumps(facts, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        sys.stderr.write(f"collector: cannot write to {output}: {error.strerror}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
