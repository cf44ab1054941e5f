"""The bed as tests use it."""

import subprocess
from pathlib import Path

from testbed import access, layout
from testbed.host import BedError

COMMAND = Path(__file__).resolve().parent.parent / "bed"


class Bed:
    """What tests do with the bed. Raises BedError if none is up."""

    def __init__(self) -> None:
        settings = layout.load()
        if settings is None:
            raise BedError("no bed is up: run `bed up`")
        self.settings = settings
        self.nodes = [node.name for node in settings.compute()]
        self.shared = layout.shared()  # /shared, seen from here
        self.ssh_config = access.config()
        self.inventory = layout.state() / "inventory"

    def ssh(self, user_at_host: str, line: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """A shell line on a host; `ctl` is `bench@ctl`."""
        command = ["ssh", "-F", str(self.ssh_config), user_at_host, line]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)

    def out(self, user_at_host: str, line: str, timeout: float = 120) -> str:
        """What a shell line on a host prints; raises BedError if it fails."""
        done = self.ssh(user_at_host, line, timeout)
        if done.returncode != 0:
            raise BedError(f"{line} on {user_at_host} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command `bed` with these arguments."""
        command = [str(COMMAND), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
