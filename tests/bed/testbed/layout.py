"""What the bed consists of, and where its files lie."""

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.host import BedError

ROOT = Path(__file__).resolve().parents[3]
#: what does not outlive this host's running: mount points, the sysctl as it was, whose bed it is
RUN = Path("/run/plumb-bed")
#: held while a command changes the bed
LOCK = Path("/run/plumb-bed.lock")

CONTROLLER = "ctl"
MOST_NODES = 6
BENCH_UID = 1000
SHARED_SIZE = 24 * 2**30  # bytes, at most; the file is sparse
NETWORK = "10.77.0"
PREFIX = 24
GATEWAY = f"{NETWORK}.1"
BRIDGE = "plumb-bed0"

RATE = re.compile(r"[1-9][0-9]{0,8}(k|m|g)bit")
TOPOLOGY = re.compile(r"Sockets=[1-9][0-9]{0,2} CoresPerSocket=[1-9][0-9]{0,2} ThreadsPerCore=[1-9]")


@dataclass(frozen=True)
class Node:
    """One host of the bed."""

    name: str
    address: str

    @property
    def netns(self) -> str:
        """Its network namespace."""
        return f"plumb-{self.name}"

    @property
    def link(self) -> str:
        """The host's end of its network link."""
        return f"plumb-{self.name}"

    @property
    def root(self) -> Path:
        """Its root file system, mounted while it is up."""
        return RUN / self.name

    @property
    def files(self) -> Path:
        """What it has written, and its console."""
        return state() / "nodes" / self.name


@dataclass(frozen=True)
class Settings:
    """The options of `bed up`. Raises BedError for a value that is none."""

    flavor: str = "slurm"
    nodes: int = 2
    route: bool = True
    shape: str = ""  # tc's rate, empty: unlimited
    fake_topology: str = ""  # of slurm.conf, empty: that of this host
    scheduler: str = "slurm"  # ssh: none

    def __post_init__(self) -> None:
        if self.flavor not in ("fresh", "slurm"):
            raise BedError(f"no flavor is called {self.flavor!r}: fresh or slurm")
        if self.scheduler not in ("slurm", "sge", "ssh"):
            raise BedError(f"no scheduler is called {self.scheduler!r}: slurm, sge or ssh")
        if not 1 <= self.nodes <= MOST_NODES:
            raise BedError(f"{self.nodes} compute nodes: 1 to {MOST_NODES}")
        if self.shape and not RATE.fullmatch(self.shape):
            raise BedError(f"{self.shape!r} is not a rate: 100mbit, 1gbit, …")
        if self.fake_topology and not TOPOLOGY.fullmatch(self.fake_topology):
            raise BedError(f"{self.fake_topology!r} is not a topology: Sockets=2 CoresPerSocket=8 ThreadsPerCore=1")

    def compute(self) -> list[Node]:
        """The compute nodes."""
        return [Node(f"node{number}", f"{NETWORK}.{10 + number}") for number in range(1, self.nodes + 1)]

    def hosts(self) -> list[Node]:
        """The controller, then the compute nodes."""
        return [controller(), *self.compute()]

    def node(self, name: str) -> Node:
        """A compute node by name. Raises BedError if there is none."""
        for node in self.compute():
            if node.name == name:
                return node
        raise BedError(f"no compute node is called {name!r}: {', '.join(node.name for node in self.compute())}")


def controller() -> Node:
    """Login node, where the scheduler's master runs."""
    return Node(CONTROLLER, f"{NETWORK}.10")


def every() -> list[Node]:
    """All hosts that any bed can have."""
    return Settings(nodes=MOST_NODES).hosts()


def build() -> Path:
    """Folder of all that is made here: build of this checkout."""
    return Path(os.environ.get("PLUMB_BUILD") or ROOT / "build").resolve()


def state() -> Path:
    """Folder of the bed's files."""
    return build() / "bed"


def shared() -> Path:
    """What is /shared on all nodes."""
    return state() / "shared"


@dataclass(frozen=True)
class Narrowed:
    """CPUs of a node that has fewer than the others (fault `topology`), as lists: what it keeps, what is taken away."""

    kept: str
    reserved: str


def reserved() -> dict[str, Narrowed]:
    """The nodes that the fault `topology` has narrowed."""
    file = state() / "narrowed.json"
    if not file.exists():
        return {}
    return {name: Narrowed(**two) for name, two in json.loads(file.read_text(encoding="utf-8")).items()}


def reserve(narrowed: dict[str, Narrowed]) -> None:
    """Keep which nodes are narrowed."""
    text = json.dumps({name: asdict(two) for name, two in narrowed.items()})
    (state() / "narrowed.json").write_text(text + "\n", encoding="utf-8")


def save(settings: Settings) -> None:
    """Keep the settings for the next command."""
    (state() / "settings.json").write_text(json.dumps(asdict(settings), indent=1) + "\n", encoding="utf-8")


def load() -> Settings | None:
    """Settings of the bed that is up, or was when a crash ended it; None without one."""
    file = state() / "settings.json"
    if not file.exists():
        return None
    try:
        return Settings(**json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as fault:
        raise BedError(f"{file} cannot be read ({fault}): run `bed down`") from fault
