"""Launches on one host take turns."""

import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from plumbline.launch import hosts

#: has the turn until its input ends, and says since when
HOLDER = """
import sys
from plumbline.launch import hosts
with hosts.turn() as remarks:
    print(remarks, flush=True)
    sys.stdin.read()
"""
#: three turns, of which each is as long as two others may need to overlap it
THREE = """
import json, time
from plumbline.launch import hosts
spans = []
for _ in range(3):
    with hosts.turn(patience_s=600):
        begin = time.monotonic()
        time.sleep(0.05)
        spans.append((begin, time.monotonic()))
print(json.dumps(spans))
"""


@pytest.fixture(autouse=True)
def own_address(monkeypatch: pytest.MonkeyPatch) -> str:
    """An address of this test alone: launches of other tests are measured meanwhile."""
    address = f"\0plumbline test {os.getpid()}"
    monkeypatch.setattr(hosts, "TURN", address)
    monkeypatch.setattr(hosts, "_slow", set())
    return address


def started(code: str) -> subprocess.Popen[str]:
    """A process that runs ``code`` with this test's address."""
    head = f"from plumbline.launch import hosts; hosts.TURN = {hosts.TURN!r}\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@contextlib.contextmanager
def held() -> Iterator[subprocess.Popen[str]]:
    """Another process that has the turn; it is ended."""
    with started(HOLDER) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "[]\n"
        try:
            yield holder
        finally:
            holder.kill()


def test_launches_of_several_commands_never_overlap():
    children = [started(THREE) for _ in range(3)]
    spans = sorted(tuple(span) for child in children for span in json.loads(child.communicate(timeout=600)[0]))
    assert len(spans) == 9
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))


def test_one_that_waits_says_for_whom_and_goes_on_at_its_end(capsys, monkeypatch):
    monkeypatch.setattr(hosts, "ANNOUNCED_S", 0.0)
    with held() as holder:
        with hosts.turn(patience_s=0.3) as remarks:
            (remark,) = remarks
        assert remark.startswith(f"measured beside another launch on this host: process {holder.pid} (python")
        assert f"waiting for another launch on this host: process {holder.pid} (python" in capsys.readouterr().err
        with monkeypatch.context() as patch:
            patch.setattr(hosts, "_waited", lambda *_: pytest.fail("waits again"))
            with hosts.turn() as remarks:  # of which it is known that it keeps the turn
                assert remarks == [remark]
        holder.kill()
        holder.wait()
        with hosts.turn() as remarks:
            assert remarks == []


#: of another user: has the turn until its input ends; its child works if it is asked to
FOREIGN = """
import os, subprocess, sys
from plumbline.launch import hosts
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
with hosts.turn() as remarks:
    print(remarks, flush=True)
    work = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) if WORKS else None
    sys.stdin.read()
    work and work.kill()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's processes need root")
@pytest.mark.parametrize("works", [False, True])
def test_another_user_is_only_waited_for_while_work_is_done(works, monkeypatch):
    waits = []

    def sleep(seconds, real=hosts.time.sleep):
        waits.append(seconds)
        real(seconds)

    monkeypatch.setattr(hosts.time, "sleep", sleep)
    monkeypatch.setattr(hosts, "IDLE_S", 0.5)
    with started(FOREIGN.replace("WORKS", str(works))) as holder:
        assert holder.stdout
        assert holder.stdin
        assert holder.stdout.readline() == "[]\n"
        with hosts.turn(patience_s=2.0) as remarks:
            (remark,) = remarks
        assert remark.startswith(f"measured beside another launch on this host: process {holder.pid} (python")
        assert remark.endswith(" of user nobody")
        assert (sum(waits) > 1.0) == works  # what it slept for, not how long that took
        holder.stdin.close()
        holder.wait(60)


def test_who_has_the_turn_and_cannot_be_asked_is_not_waited_for_long(own_address, monkeypatch):
    waits = []
    monkeypatch.setattr(hosts.time, "sleep", lambda seconds, real=hosts.time.sleep: waits.append(real(seconds)))
    monkeypatch.setattr(hosts, "IDLE_S", 0.2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(own_address)  # and never listens
        with hosts.turn(patience_s=600) as remarks:
            assert remarks == ["measured beside another launch on this host"]
    assert waits


def test_a_host_without_such_addresses_has_no_turns(monkeypatch):
    monkeypatch.setattr(hosts, "TURN", "\0" + "x" * 200)  # longer than the kernel takes
    with hosts.turn() as remarks:
        assert remarks == []
