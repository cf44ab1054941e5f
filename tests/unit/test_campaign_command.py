"""``plumb campaign`` around ReFrame: how it ends when ReFrame is interrupted or runs nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: plumb with another bin folder beside its Python, where a program stands in for ReFrame
PLUMB = "import sys; sys.executable = sys.argv.pop(1); from plumbline.cli import main; sys.exit(main(sys.argv[1:]))"
#: ReFrame while it loads the tests; an interrupt ends it as it ends Python
LOADING = '#!/bin/sh\ntouch "$0.started"\nexec sleep 60\n'


@pytest.fixture
def reframe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-in for ReFrame belongs; no site claims this host, so that no node is asked for."""
    for name in ("sites", "results", "build", "bin"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    return tmp_path / "bin" / "reframe"


def start(reframe: Path, text: str) -> subprocess.Popen[str]:
    reframe.write_text(text, encoding="utf-8")
    reframe.chmod(0o755)
    command = [sys.executable, "-c", PLUMB, str(reframe.with_name("python")), "campaign"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_the_first_case_is_an_interrupt(reframe: Path, number: signal.Signals) -> None:
    with start(reframe, LOADING) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("campaign ")
        started = reframe.with_name("reframe.started")
        deadline = time.monotonic() + 30
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(number)
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 130, output + errors
    assert "interrupted" in output
    assert "no test ran" not in errors


def test_a_reframe_that_runs_nothing_is_an_error_with_its_last_words(reframe: Path) -> None:
    with start(reframe, "#!/bin/sh\necho 'reframe: error: no such tag'\nexit 1\n") as child:
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 2
    assert errors.startswith("plumb: no test ran: reframe: error: no such tag")
