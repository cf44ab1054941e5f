"""YAML that is read: what merges give, and that no few bytes become gigabytes."""

import resource
import subprocess
import sys

import pytest
import yaml

from plumbline.base import schemas
from plumbline.base.errors import PlumbError
from plumbline.base.schemas import bounded_yaml, read_yaml

BYTES = 2 << 30


def bomb(levels, width):
    """Merges of merges, ``width`` of each in the next."""
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * width)}]}}" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("loader", [bounded_yaml.FAST, bounded_yaml.Plain])
def test_honest_merges_are_as_yaml_has_them(loader, monkeypatch):
    monkeypatch.setattr(bounded_yaml, "FAST", loader)
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}], x: 9}\nd: &d {<<: *a}\ne: {<<: *d}\n"
    assert schemas.parse_yaml(text) == yaml.safe_load(text)
    many = "a: &a {x: 1}\n" + "".join(f"b{n}: {{<<: *a, y: {n}}}\n" for n in range(5000))
    assert len(schemas.parse_yaml(many)) == 5001


@pytest.mark.parametrize("text", [bomb(9, 9), bomb(60, 2), bomb(3, 3000), "a: &a {<<: *a}\n"])
@pytest.mark.parametrize("loader", ["FAST", "Plain"])
def test_merges_of_merges_end_in_one_line_and_little_memory(text, loader, tmp_path):
    """In a process of its own with little memory."""
    file = tmp_path / "site.yaml"
    file.write_text(text)
    code = (
        "import sys; from pathlib import Path; from plumbline.base import schemas\n"
        "from plumbline.base.schemas import bounded_yaml\n"
        f"bounded_yaml.FAST = bounded_yaml.{loader}\n"
        "try: schemas.read_yaml(Path(sys.argv[1]), 'the site', 'x')\n"
        "except schemas.PlumbError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, file],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "merges copy more than 100000 keys" in done.stdout or "nested too deeply" in done.stdout


def test_the_line_is_named(tmp_path):
    (tmp_path / "x.yaml").write_text(bomb(9, 9))
    with pytest.raises(PlumbError, match=r"x\.yaml:6"):
        read_yaml(tmp_path / "x.yaml", "it", "")


@pytest.mark.parametrize("loader", [bounded_yaml.FAST, bounded_yaml.Plain])
def test_exponents_need_no_sign(loader):
    text = "[3.84e10, -1.e3, 1.5E+2, 12e4567, 1234e56, v1.2e3, 1.2.3e4]"
    numbers = [38400000000.0, -1000.0, 150.0, "12e4567", "1234e56", "v1.2e3", "1.2.3e4"]
    assert yaml.load(text, loader) == bounded_yaml.load(text) == numbers  # noqa: S506
