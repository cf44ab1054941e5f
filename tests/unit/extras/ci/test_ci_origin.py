"""What the pipeline of an application installs: a file with its SHA-256, whoever has the name in a registry."""

import hashlib
import json
import platform
import subprocess
import sys
import zipfile
from importlib import metadata

import pytest

import plumbline
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras.ci import pipelines

SUM = "0" * 64


@pytest.mark.parametrize(
    "name",
    ["plumbline", f"plumbline=={plumbline.__version__}", "plumbline-hpc", "plumbline-hpc[x]>=1", "/nowhere/x.whl", "."],
)
def test_a_name_is_not_installed(name):
    with pytest.raises(PlumbError, match="is not a file here, and what has that name elsewhere may not be ours"):
        pipelines.fixed(name)


@pytest.mark.parametrize(
    "name",
    ["https://example.org/x.whl", f"https://example.org/x.whl#sha256={SUM[1:]}", "git+https://example.org/x@main"],
)
def test_an_address_has_a_hash(name):
    with pytest.raises(PlumbError, match="could become another file"):
        pipelines.fixed(name)
    for good in (f"https://example.org/x.whl#sha256={SUM}", f"git+https://example.org/x@{SUM[:40]}"):
        assert pipelines.fixed(good) == good


def wheel(folder, name="own-1-py3-none-any.whl"):
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as made:
        made.writestr("own.py", "")
        made.writestr("own-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1\n")
        made.writestr("own-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("own-1.dist-info/RECORD", "")
    return folder / name


def test_pip_refuses_another_file_of_that_name(tmp_path):
    file = wheel(tmp_path / "a b")
    address = pipelines.fixed(str(file))
    assert address == f"{file.as_uri()}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}"
    pip = [sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    assert subprocess.run([*pip, tmp_path / "one", "--", address], capture_output=True, check=False).returncode == 0
    file.write_bytes(file.read_bytes() + b"x")
    done = subprocess.run([*pip, tmp_path / "two", "--", address], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "HASHES" in done.stderr


def test_a_checkout_has_the_wheel_of_its_version(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path))
    wheel(tmp_path / "dist", f"plumbline_hpc-0.0.1-py3-none-linux_{platform.machine()}.whl")
    wheel(tmp_path / "dist", f"plumbline_hpc-{plumbline.__version__}-py3-none-linux_z80.whl")
    with pytest.raises(PlumbError, match="there is no wheel of this checkout") as error:
        pipelines.fixed(None)
    assert "make wheel" in str(error.value)
    file = wheel(tmp_path / "dist", f"plumbline_hpc-{plumbline.__version__}-py3-none-linux_{platform.machine()}.whl")
    assert pipelines.fixed(None).startswith(f"{file.as_uri()}#sha256=")


def test_a_wheel_is_what_pip_installed(tmp_path, monkeypatch):
    file = wheel(tmp_path / "w")
    known = hashlib.sha256(file.read_bytes()).hexdigest()
    direct = {"url": file.as_uri(), "archive_info": {"hash": f"sha256={known}", "hashes": {"sha256": known}}}

    class Installed:
        @staticmethod
        def read_text(name):
            return None if direct is None else json.dumps(direct)

    monkeypatch.setattr(paths, "is_installed", lambda: True)
    monkeypatch.setattr(metadata, "distribution", {pipelines.DISTRIBUTION: Installed}.__getitem__)
    assert pipelines.fixed(None) == f"{file.as_uri()}#sha256={known}"
    direct["url"] = "https://example.org/own.whl"
    assert pipelines.fixed(None) == f"https://example.org/own.whl#sha256={known}"
    for other in ({**direct, "archive_info": {}}, {"url": (tmp_path / "gone").as_uri()}, None):
        direct = other
        with pytest.raises(PlumbError, match="it is not known what this Plumbline was installed from"):
            pipelines.fixed(None)
