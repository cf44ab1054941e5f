"""The guard against tests that leave something among a user's data."""

import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).resolve().parents[2] / "support"
CONFTEST = """
import sys
from pathlib import Path
sys.path.insert(0, {support!r})
from untouched import Untouched

def pytest_configure(config):
    config.pluginmanager.register(Untouched(Path("checkout")))
"""


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a test that does ``line``, in a folder with a checkout that has one record."""
    (folder / "checkout/results/local").mkdir(parents=True)
    (folder / "checkout/results/local/a.jsonl").write_text("{}\n")
    (folder / "conftest.py").write_text(CONFTEST.format(support=str(SUPPORT)))
    (folder / "test_one.py").write_text(f"from pathlib import Path\n\n\ndef test_one():\n    {line}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("line", "named"), [
    ("Path('checkout/results/local/b.jsonl').touch()", "results/local/b.jsonl"),
    ("Path('checkout/results/local/a.jsonl').write_text('')", "results/local/a.jsonl"),
    ("Path('checkout/results/local/a.jsonl').unlink()", "results/local/a.jsonl"),
    ("Path('checkout/stacks/odd').mkdir(parents=True)", "stacks/odd"),
], ids=["new", "changed", "removed", "folder"])  # fmt: skip
def test_a_run_that_changes_the_checkout_fails_and_names_what(tmp_path, line, named):
    done = run(tmp_path, line)
    assert done.returncode == 1, done.stdout
    assert named in done.stdout.splitlines()
    assert "1 passed" in done.stdout


def test_a_run_that_changes_nothing_passes(tmp_path):
    done = run(tmp_path, "assert list(Path('checkout').rglob('a.jsonl'))")
    assert done.returncode == 0, done.stdout + done.stderr
