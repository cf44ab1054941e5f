"""What test_lifecycle.py runs in `apart`: beds raised, broken off and taken down. Prints what was seen as JSON."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from testbed import access, cgroups, layout, network

BED = str(Path(__file__).with_name("bed"))


def output(*command: str) -> list[str]:
    """Lines that a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def snapshot() -> dict[str, object]:
    """All that a bed could leave on a host."""
    return {
        "links": sorted(line.split()[0] for line in output("ip", "-br", "link")),
        "namespaces": network.namespaces(),
        "nft": output("nft", "list", "tables"),
        "mounts": sorted(line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()),
        "ip_forward": network.FORWARD.read_text(),
        "cgroups": [str(folder) for folder in cgroups.folders()],
        "processes": sorted(cgroups.processes()),
        "state": layout.state().exists(),
        "run": layout.RUN.exists(),
    }


def bed(*arguments: str) -> None:
    """The command `bed`; it must succeed."""
    done = subprocess.run([BED, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bed {' '.join(arguments)}: {done.stderr}")


def broken_off(how: signal.Signals) -> dict[str, object]:
    """Start `bed up`, end it when the first node boots; its exit status, what it said, and what is left."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([BED, "up", "--nodes", "1"], stderr=said)
        end = time.monotonic() + 120
        while cgroups.supervisor(layout.CONTROLLER) is None and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(how)
        status = process.wait()
        said.seek(0)
        return {"status": status, "said": said.read(), "left": snapshot()}


def supervisors() -> dict[str, int | None]:
    """Process ids of the nodes."""
    return {node.name: cgroups.supervisor(node.name) for node in layout.every()}


def main() -> None:
    """Run all, print what was seen."""
    seen: dict[str, object] = {"before": snapshot()}

    seen["interrupted"] = broken_off(signal.SIGINT)
    bed("down")
    seen["down after interrupt"] = snapshot()

    seen["killed"] = broken_off(signal.SIGKILL)
    # a bed of another shape is raised on what the killed one left
    bed("up", "--nodes", "4", "--no-route", "--fake-topology", "Sockets=2 CoresPerSocket=8 ThreadsPerCore=1")
    first = supervisors()
    seen["up"] = snapshot()
    seen["route"] = access.ssh("node4", "ip", "route", "show", "default")
    seen["ranks"] = access.ssh("ctl", "srun", "-N4", "-n64", "hostname", user="bench").split()

    bed("up", "--nodes", "2", "--shape", "100mbit", "--route")
    second = supervisors()
    seen["kept"] = all(second[name] == first[name] is not None for name in ("ctl", "node1", "node2"))
    seen["removed"] = second["node3"] is None and second["node4"] is None
    seen["route again"] = access.ssh("node2", "ip", "route", "show", "default")
    seen["shape"] = output("tc", "qdisc", "show", "dev", "plumb-node1")

    for pid in cgroups.processes():
        with contextlib.suppress(ProcessLookupError):  # it ended with one that was killed before
            os.kill(pid, signal.SIGKILL)
    bed("down")
    seen["down after crash"] = snapshot()
    bed("down")
    json.dump(seen, sys.stdout)


main()
