"""A campaign, a gate and a run among variables that would do harm; the long part sets them one by one."""

import os
import tempfile
from pathlib import Path

import pytest
import stored
from foreign_variables import foreign
from processes import ended

from plumbline.base import paths

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
PLUMB = paths.suite_program("plumb")
ONE = ["--test", "pi_sum.*placement=core"]
#: a repository whose programs need no build: the lines of one get the variables of the person who wrote them
APPLICATION = """application: clock
programs:
  clock:
    command: ./clock.py
    threads: 1
    mpi: false
    placements: [core]
    figures:
      took: {pattern: 'took ([0-9.]+) s', take: first, unit: s, better: lower}
"""
CLOCK = """#!/usr/bin/env python3
import time

begin = time.monotonic()
sum(number * number for number in range(1_000_000))
print(f"took {time.monotonic() - begin:.6f} s")
"""
#: words of a command, and its exit statuses where its launches were verified
COMMANDS = {
    "campaign": (["campaign", "--profile", "full", *ONE, "--", "-S", "launches=1", "-p", "mpich"], {0}),
    "gate": (
        ["gate", "--baseline", "mpich", "--candidate", "openmpi", *ONE, "--minutes", "1", "--first-fail"],
        {0, 1, 2, 3},
    ),
    "run": (["run", "--stack", "mpich", "--launches", "1"], {0}),
}
with tempfile.TemporaryDirectory() as place:
    NAMES = sorted(foreign(Path(place)))


def verified(name: str, variables: dict[str, str], folder: Path) -> None:
    """Run the command, and require that its launches were verified."""
    words, statuses = COMMANDS[name]
    around = {**os.environ, **variables, "PLUMB_RESULTS": str(folder / "results")}
    if name == "run":
        (folder / "plumb.yaml").write_text(APPLICATION)
        (folder / "clock.py").write_text(CLOCK)
        (folder / "clock.py").chmod(0o755)
    done = ended([PLUMB, *words], env=around, cwd=folder)
    output = done.stdout + done.stderr
    assert done.returncode in statuses, output
    records = stored.sound(folder / "results")
    assert records, output
    for record in records:
        assert record["verified"], record["reasons"]
        assert record["suite"]["dirty"] in (True, False)
    assert not (paths.root() / "${HOME}").exists()


def test_a_campaign_among_all_of_them_is_verified(tmp_path):
    verified("campaign", foreign(tmp_path), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_each_of_them_alone_does_no_harm(command, name, tmp_path):
    verified(command, {name: foreign(tmp_path)[name]}, tmp_path)
