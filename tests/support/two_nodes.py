"""Nodes on one machine: namespaces of their own names, networks and /dev/shm, with sshd in each.

Two are joined by a link, more by a switch. Nothing stays: a node is the process namespace of one process, and its link,
its mounts and its daemon go with that. All see all CPUs and the same files. ``tests/two-nodes COMMAND`` runs a command
on the first of two.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import own_site

from plumbline.base import paths

NAMES = ("plumb-n1", "plumb-n2")
#: their first ranks share a core: one that waits there for a message keeps it from the one that is to send it
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1", "I_MPI_THREAD_YIELD": "2"}
_ADDRESS = "198.51.100.{}"  # of a block for documentation (RFC 5737): no one's own
_NEEDED = ("unshare", "nsenter", "ip", "sshd", "ssh-keygen", "mount")
_NEW = ("unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

#: what the first process of a node does: a private view of the machine, then it waits until its input ends
_NODE = """
set -e
hostname "$1"
mount --make-rprivate /
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
mount --bind "$2/etc/hosts" /etc/hosts
mount --bind "$2/etc/ssh" /etc/ssh
ip link set lo up
echo ready
read -r _
ip address add "$3/24" dev eth0
ip link set eth0 up
"$(PATH=$PATH:/usr/sbin command -v sshd)" -f /etc/ssh/sshd_config
echo ready
read -r _
is_up() { ip -o link show dev eth0 | grep -q 'state UP'; }
for _ in $(seq 600); do is_up && break || sleep 0.1; done
is_up
echo ready
exec cat
"""
#: the first process of a switch: it joins the ports that its input names
_SWITCH = """
set -e
ip link add switch type bridge
ip link set switch up
echo ready
read -r ports
for port in $ports; do ip link set "$port" master switch up; done
echo ready
exec cat
"""
_CLIENT = """
Host *
  IdentityFile {folder}/etc/ssh/id
  IdentitiesOnly yes
  UserKnownHostsFile /dev/null
  GlobalKnownHostsFile {folder}/etc/ssh/known_hosts
"""
_SERVER = """
HostKey {folder}/etc/ssh/id
AuthorizedKeysFile {folder}/etc/ssh/id.pub
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
"""


@dataclass(frozen=True)
class Nodes:
    """The process ids of their first processes, as the machine counts them."""

    pids: Sequence[int]

    def run(
        self, command: Sequence[str], environment: dict[str, str], timeout: float, number: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """``command`` on a node, the first one by default, in the present folder."""
        return subprocess.run(
            [*self.enter(number), *command],
            capture_output=True, text=True, check=False, env=environment, timeout=timeout, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def enter(self, number: int = 0) -> list[str]:
        """The words before a command that is to run on a node, in the present folder."""
        spaces = ["--mount", "--uts", "--net", "--ipc", "--pid"]
        return ["nsenter", f"--target={self.pids[number]}", *spaces, f"--wd={Path.cwd()}", "--"]


@contextlib.contextmanager
def raised(folder: Path, names: Sequence[str] = NAMES) -> Iterator[Nodes]:
    """Raise them, with their settings in ``folder``; skip where this host cannot."""
    missing = [name for name in _NEEDED if shutil.which(name, path=_PATH) is None]
    if missing or os.geteuid() != 0:
        _refuse(f"nodes on one machine need {', '.join(missing) or 'root'}")
    if subprocess.run([*_NEW, "true"], capture_output=True, check=False).returncode != 0:
        _refuse(f"this host refuses {shlex.join(_NEW)}")
    _write_settings(folder, names)
    with contextlib.ExitStack() as stack:
        nodes = [
            stack.enter_context(_begun(_NODE, name, str(folder), _ADDRESS.format(number)))
            for number, name in enumerate(names, 1)
        ]
        pids = [_child(node) for node in nodes]
        if len(pids) == 2:
            _link(pids[0], "eth0", pids[1])
        else:
            switch = stack.enter_context(_begun(_SWITCH))
            ports = [f"port{number}" for number in range(len(pids))]
            for pid, port in zip(pids, ports, strict=True):
                _link(_child(switch), port, pid)
            _go_on(switch, " ".join(ports))
        # the kernel says only after a while that a link has its other end; until then UCX does not use it
        for _ in ("begin", "wait for the link"):
            for node in nodes:
                _go_on(node, "go")
        yield Nodes(pids)


def _refuse(why: str) -> NoReturn:
    """Skip the test, or end the command."""
    if "pytest" in sys.modules:
        sys.modules["pytest"].skip(f"not run: {why}")
    raise SystemExit(f"two-nodes: {why}")


@dataclass(frozen=True)
class Site:
    """A site with the nodes in a folder of its own, with its results."""

    nodes: Nodes
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """Those by which a command finds them."""
        return {**os.environ, **{f"PLUMB_{name.upper()}": str(self.folder / name) for name in ("sites", "results")}}

    def plumb(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A plumb command on the first node."""
        return self._run("plumb", *words)

    def command(self, name: str, *words: str) -> tuple[int, str]:
        """The exit status of ``plumb`` or ``reframe`` on the first node, and all that it prints."""
        done = self._run(name, *words)
        return done.returncode, done.stdout + done.stderr

    def _run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.nodes.run([paths.program(name), *words], self.variables, 600)


@contextlib.contextmanager
def site_over(folder: Path, names: Sequence[str] = NAMES) -> Iterator[Site]:
    """This machine's site, where it is called by the names of the nodes."""
    called = {"hostnames": [f"^{name}$" for name in names]}
    own_site.copy(folder, of_site=called, hosts=list(names), environment=YIELDING)
    with raised(folder, names) as nodes:
        yield Site(nodes, folder)


def _write_settings(folder: Path, names: Sequence[str]) -> None:
    ssh = folder / "etc" / "ssh"
    ssh.mkdir(parents=True)
    addresses = [_ADDRESS.format(number) for number in range(1, len(names) + 1)]
    hosts = "".join(f"{address} {name}\n" for name, address in zip(names, addresses, strict=True))
    (folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{hosts}", encoding="ascii")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(ssh / "id")], check=True)
    key = (ssh / "id.pub").read_text(encoding="ascii")
    (ssh / "known_hosts").write_text(f"{','.join((*names, *addresses))} {key}", encoding="ascii")
    (ssh / "ssh_config").write_text(_CLIENT.format(folder=folder), encoding="ascii")
    (ssh / "sshd_config").write_text(_SERVER.format(folder=folder), encoding="ascii")


@contextlib.contextmanager
def _begun(script: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The process that holds a node or a switch: when it ends, the kernel ends all that runs there."""
    with subprocess.Popen(
        [*_NEW, "bash", "-c", script, "node", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PATH": _PATH},
    ) as node:  # fmt: skip
        try:
            _ready(node)
            yield node
        finally:
            node.kill()


def _link(first: int, name: str, second: int) -> None:
    """Join the network ``first``, where the end is called ``name``, with eth0 of ``second``."""
    ends = ["netns", str(first), "type", "veth", "peer", "name", "eth0", "netns", str(second)]
    subprocess.run(["ip", "link", "add", name, *ends], check=True, env={**os.environ, "PATH": _PATH})


def _go_on(node: subprocess.Popen[str], line: str) -> None:
    assert node.stdin is not None
    node.stdin.write(f"{line}\n")
    node.stdin.flush()
    _ready(node)


def _ready(node: subprocess.Popen[str]) -> None:
    assert node.stdout is not None
    assert node.stdout.readline() == "ready\n"


def _child(node: subprocess.Popen[str]) -> int:
    """The process that is the first of the node: the only child of ``unshare``."""
    (child,) = Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text(encoding="ascii").split()
    return int(child)


def main(words: Sequence[str]) -> int:
    """Run a command on the first of two nodes; its results are kept apart from those of this machine."""
    if not words or words[0].startswith("-"):
        raise SystemExit("usage: tests/two-nodes COMMAND, such as: tests/two-nodes plumb lab S4")
    if not (paths.sites() / "local").is_dir():
        _refuse("there is no site yet: make setup")
    with tempfile.TemporaryDirectory(prefix="two-nodes-") as folder, site_over(Path(folder)) as over:
        around = over.variables | {"PATH": f"{Path(sys.executable).parent}:{_PATH}"}
        around["PLUMB_RESULTS"] = os.environ.get("PLUMB_RESULTS", str(paths.root() / "build" / "two-nodes" / "results"))
        around["RFM_CONFIG_FILES"] = str(over.folder / "sites" / "settings.py")
        signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the command, which ends in its own way
        status = subprocess.run([*over.nodes.enter(), *words], env=around, check=False).returncode
        return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
