"""`. ./activate` in bash and zsh."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SHOW = 'echo "$RFM_CONFIG_FILES|$RFM_PREFIX|$PATH"'


@pytest.fixture(params=["bash", "zsh"])
def shell(request):
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture
def checkout(tmp_path):
    """A folder that looks like a checkout, with a blank in its name."""
    root = tmp_path / "a checkout"
    (root / ".venv" / "bin").mkdir(parents=True)
    python = root / ".venv" / "bin" / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    shutil.copy(ROOT / "activate", root / "activate")
    return root


def start(shell, script, cwd="/"):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PLUMB_", "RFM_"))}
    environment["PATH"] = "/usr/bin:/bin"
    flags = ["--noprofile", "--norc"] if shell == "bash" else ["-f"]
    command = [shutil.which(shell), *flags, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)


@pytest.mark.parametrize("options", ["", "set -eu; "])
def test_variables_from_any_directory(shell, checkout, options):
    done = start(shell, f"{options}. '{checkout}/activate'; {SHOW}")
    assert done.stderr == ""
    config, prefix, path = done.stdout.strip().split("|")
    assert config == f"{checkout}/site-configs/settings.py"
    assert prefix == f"{checkout}/build/reframe"
    assert path == f"{checkout}/.venv/bin:{checkout}/build/tools/bin:/usr/bin:/bin"


def test_relative_path(shell, checkout):
    done = start(shell, f". ./activate; {SHOW}", cwd=checkout)
    assert done.stdout.split("|")[0] == f"{checkout}/site-configs/settings.py"


def test_by_a_link(shell, checkout, tmp_path):
    (tmp_path / "link").symlink_to(checkout / "activate")
    done = start(shell, f". '{tmp_path}/link'; {SHOW}")
    assert done.stdout.split("|")[0] == f"{checkout}/site-configs/settings.py", done.stderr


@pytest.mark.skipif(shutil.which("dash") is None, reason="no dash")
def test_another_shell_is_one_line(checkout):
    done = subprocess.run(["dash", "-c", f". '{checkout}/activate'"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("plumb: activate is for bash and zsh: ")
    assert done.stderr.count("\n") == 1


def test_a_search_path_of_cd_does_not_lead_elsewhere(shell, checkout, tmp_path):
    (tmp_path / "elsewhere" / checkout.name / ".venv").mkdir(parents=True)
    script = f"export CDPATH='{tmp_path / 'elsewhere'}'; . 'a checkout/activate'; {SHOW}"
    done = start(shell, script, cwd=checkout.parent)
    assert done.stdout.split("|")[0] == f"{checkout}/site-configs/settings.py", done.stderr


def test_twice_is_like_once(shell, checkout):
    once = start(shell, f". '{checkout}/activate'; {SHOW}").stdout
    assert start(shell, f". '{checkout}/activate'; . '{checkout}/activate'; {SHOW}").stdout == once


def test_deactivate_restores(shell, checkout):
    script = (
        f"export RFM_PREFIX='/my own'; . '{checkout}/activate'; plumb_deactivate; "
        'echo "$RFM_PREFIX|${RFM_CONFIG_FILES-unset}|$PATH"; command -v plumb_deactivate'
    )
    done = start(shell, script)
    assert done.stdout.strip() == "/my own|unset|/usr/bin:/bin"
    assert done.returncode != 0, done


def test_missing_environment_is_one_line(shell, checkout):
    shutil.rmtree(checkout / ".venv")
    done = start(shell, f". '{checkout}/activate'; echo \"status $? ${{RFM_PREFIX-unset}}\"")
    assert done.stdout.strip() == "status 1 unset"
    assert done.stderr.count("\n") == 1
    assert "no virtual environment" in done.stderr
    assert "make" in done.stderr
