"""What the witness of ``plumb prove`` costs: CPU time, system calls and wake-ups, of processes and of events in them.

``pytest -s -m long tests/e2e/test_prove_cost.py`` prints the table of docs/prove.md.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from witness_helper import compile_c

from plumbline.launch.witness import processes

pytestmark = [pytest.mark.e2e, pytest.mark.long]
EVENTS = {"process": 1000, "thread": 100_000, "free": 1_000_000}
#: rounds of work, about a second
WORK = 500_000_000


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    source = (Path(__file__).resolve().parents[1] / "support" / "events.c").read_text()
    return compile_c(tmp_path_factory.mktemp("cost"), source, "-pthread", name="events")


def used(folder, watched, *words):
    """CPU seconds and waits of a command, the least of five."""
    variables = processes.preloaded(os.environ, folder) if watched else dict(os.environ)
    seen = []
    for _ in range(5):
        with subprocess.Popen([*map(str, words)], env=variables) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        seen.append((usage.ru_utime + usage.ru_stime, usage.ru_nvcsw))
    return min(cpu for cpu, _ in seen), min(waits for _, waits in seen)


def calls(folder, watched, *words):
    """The system calls of a command."""
    variables = processes.preloaded({}, folder) if watched else {}
    told = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    out = Path(folder) / "calls"
    subprocess.run(["strace", "-f", "-o", out, *told, *map(str, words)], check=True)
    return len(out.read_text().splitlines())


@pytest.mark.parametrize(("event", "most_us"), [("process", 20_000), ("thread", 50), ("free", 0.1)])
def test_cost_of_an_event(program, tmp_path, event, most_us):
    count = EVENTS[event]
    (bare, bare_waits), (watched, waits) = (used(tmp_path, on, program, event, count) for on in (False, True))
    cost_us, woken = (watched - bare) / count * 1e6, (waits - bare_waits) / count
    print(f"\n{event}: {cost_us:.3f} us of CPU time and {woken:.3f} waits each, of {count}")
    assert cost_us < most_us
    assert woken < 1


def test_nothing_happens_while_a_program_works(program, tmp_path):
    """What a longer run costs more is below 0.1 %: no system call and no wake-up comes with time."""
    if not shutil.which("strace"):
        pytest.skip("strace counts the system calls")
    bare = calls(tmp_path, False, program, "nothing", 0)
    start, later = (calls(tmp_path, True, program, "nothing", 0, rounds) for rounds in (0, WORK))
    print(f"\nsystem calls: {bare} without, {start} with the witness, {later} when work follows")
    assert later == start
    (short_s, short), (long_s, long) = (used(tmp_path, True, program, "nothing", 0, rounds) for rounds in (0, WORK))
    print(f"waits: {short}, and {long} when work of {long_s - short_s:.2f} s follows")
    assert long - short <= 2
