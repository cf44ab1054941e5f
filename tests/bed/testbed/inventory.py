"""The two inventories: of the cluster as a site to onboard, and of the hosts for the bed's own scheduler."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from testbed import access
from testbed.layout import Settings, reserved, state
from testbed.nodes import CGROUP_MOUNT

#: what MPI needs on the bed's links: plain TCP, no fabric to be looked for; and as all nodes share the host's CPUs, the
#: first core of two nodes is one: a rank that waits has to leave it to the other, or a message takes 4 ms
ENVIRONMENT = {"FI_PROVIDER": "tcp", "OMPI_MCA_mpi_yield_when_idle": "1", "I_MPI_WAIT_MODE": "1"}


def write(settings: Settings) -> None:
    """Write both inventories."""
    onboarding = state() / "inventory" / "hosts.yml"
    onboarding.parent.mkdir(parents=True, exist_ok=True)
    onboarding.write_text(site(settings), encoding="utf-8")
    (state() / "own.yml").write_text(own(settings), encoding="utf-8")


def connection() -> dict[str, str]:
    """How Ansible reaches any node."""
    return {
        "ansible_ssh_common_args": f"-F {shlex.quote(str(access.config()))}",
        "ansible_python_interpreter": "/usr/bin/python3",
    }


def lines(values: Mapping[str, object], indent: int) -> str:
    """Lines of YAML; the values are written as JSON, which YAML reads."""
    return "".join(f"{' ' * indent}{name}: {json.dumps(value)}\n" for name, value in values.items())


def site(settings: Settings) -> str:
    """The inventory that a site would write to onboard this cluster."""
    reached: dict[str, dict[str, object]] = {
        "slurm": {"scheduler": "squeue", "access": ["--partition=main"], "nodes": settings.nodes},
        "sge": {"scheduler": "sge", "access": ["-q main", f"-pe mpi {slots()}"], "nodes": settings.nodes},
        "ssh": {"scheduler": "ssh", "hosts": [node.name for node in settings.compute()]},
    }
    partition = {"name": "main", **reached[settings.scheduler], "launcher": "mpirun", "environment": ENVIRONMENT}
    variables = {
        **connection(),
        "plumb_root": "/shared/plumbline",
        "plumb_site": "bed",
        "plumb_keep": str(state()),
        "plumb_partitions": [partition],
        "plumb_stacks": ["openmpi", "mpich", "intelmpi"],
        "plumb_onboard_full": True,
        "plumb_ceilings_measure": False,  # hosts of one machine share its caches and memory
    }
    login = settings.hosts()[0]
    host = json.dumps({"ansible_host": login.address, "ansible_user": "bench"})
    return f"---\nplumb_login:\n  hosts:\n    {login.name}: {host}\n  vars:\n{lines(variables, 4)}"


def slots() -> int:
    """CPUs of a node, which are those of this host."""
    return len(os.sched_getaffinity(0))


def own(settings: Settings) -> str:
    """The inventory of the schedulers' playbooks: every host, as root."""
    first, *others = settings.hosts()
    variables = {
        **connection(),
        "ansible_user": "root",
        "bed_slurm_fake_topology": settings.fake_topology,
        "bed_slurm_cgroup_plugin": "cgroup/v1" if Path("/sys/fs/cgroup/cpuset").is_dir() else "autodetect",
        "bed_slurm_cgroup_mount": CGROUP_MOUNT,
        "bed_sge_slots": slots(),
        "bed_slurm_reserved_cpus": {name: two.reserved for name, two in reserved().items()},
    }
    groups = {"bed_controller": [first], "bed_compute": others}
    text = "---\n"
    for group, hosts in groups.items():
        text += f"{group}:\n  hosts:\n"
        text += "".join(f"    {host.name}: {{ansible_host: {host.address}}}\n" for host in hosts)
    return f"{text}all:\n  vars:\n{lines(variables, 4)}"
