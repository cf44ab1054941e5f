"""What differs between two locks of Spack: packages with their own differences, not those that are only rebuilt."""

import json
from pathlib import Path

import msgspec
import pytest

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.spack import command, environments, lock
from plumbline.extras.spack.lock import Difference, between


def node(name, digest, needs=(), **members):
    parts = [{"name": other, "hash": key, "parameters": {"virtuals": kinds}} for other, key, *kinds in needs]
    arch = {"platform_os": "debian12", "target": "x86_64_v3"}
    return {"name": name, "version": "1.0", "hash": digest, "arch": arch, "dependencies": parts, **members}


def made(*nodes):
    text = json.dumps({"roots": [], "spack": {}, "concrete_specs": {item["hash"]: item for item in nodes}})
    return lock.decode(text)


GCC = {"external": {"path": "/usr", "extra_attributes": {"compilers": {"c": "/usr/bin/gcc"}}}}


@pytest.mark.parametrize(("before", "after", "told"), [
    ({"version": "1.20.1"}, {"version": "1.18.0"}, "ucx: version 1.20.1 and 1.18.0"),
    ({"parameters": {"dc": True, "fabrics": ["ofi", "ucx"], "opt": "3"}},
     {"parameters": {"dc": True, "fabrics": ["ucx"], "mlx5": False}},
     "ucx: fabrics ofi, ucx and ucx, opt 3 and -, mlx5 - and false"),
    ({"needs": [("rdma-core", "r")]}, {"needs": [("numactl", "n")]}, "ucx: needs rdma-core and numactl"),
    ({"needs": [("rdma-core", "r")]}, {"needs": []}, "ucx: needs rdma-core and -"),
    ({"needs": [("gcc", "g", "c")]}, {"needs": [("llvm", "l", "c")]}, "ucx: compiler gcc and llvm"),
    (GCC, {"external": {"path": "/opt"}}, "prefix /usr and /opt, c compiler /usr/bin/gcc and -"),
    ({"package_hash": "abcdefgh"}, {"package_hash": "zyxwvuts"}, "ucx: recipe abcdefg and zyxwvut"),
    ({}, {}, "ucx: hash a and b"),  # another Spack computes it in another way
])  # fmt: skip
def test_a_package_is_named_with_what_of_it_differs(before, after, told):
    compilers = [node(name, name[0]) for name in ("gcc", "llvm", "numactl", "rdma-core")]
    (found,) = between(made(node("ucx", "a", **before), *compilers), made(node("ucx", "b", **after), *compilers))
    assert str(found).endswith(told)


def test_what_is_only_rebuilt_is_not_named():
    sides = [
        made(node("ucx", f"u{number}", version=f"1.{number}"), node("openmpi", f"o{number}", [("ucx", f"u{number}")]))
        for number in (1, 2)
    ]
    assert [*between(*sides)] == [Difference("ucx", {"version": "1.1"}, {"version": "1.2"})]
    assert not [*between(sides[0], sides[0])]


def test_what_is_in_one_only_and_several_of_one_name():
    before = made(node("perl", "p"), node("gcc", "g1", version="12.2"), node("gcc", "g2", version="13.4"))
    after = made(node("gcc", "g2", version="13.4"), node("zlib", "z"))
    found = [*between(before, after)]
    texts = [str(item) for item in found]
    assert texts == ["gcc: only in the first", "perl: only in the first", "zlib: only in the second"]
    assert found[2].rows() == [("zlib", "version", "-", "1.0")]
    assert msgspec.to_builtins(found[0]) == {"name": "gcc", "before": {"version": "12.2"}, "after": {}}


def test_the_command_compares_environments_and_files(capsys, output_of, monkeypatch):
    monkeypatch.delenv("PLUMB_SPACK_SITE", raising=False)
    table = output_of(0, "stack", "diff", "spack:openmpi", "spack-mpich").splitlines()
    assert table[0].split() == ["PACKAGE", "WHAT", "spack:openmpi", "spack-mpich"]
    assert any(line.split() == ["openmpi", "version", "5.0.10", "-"] for line in table)
    file = environments.folder() / "environments" / "debian12-sapphirerapids" / "openmpi" / "spack.lock"
    assert cli.main(["stack", "diff", "--json", "spack:openmpi", str(file)]) == 0
    found = {item["name"]: item for item in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["ucx"] == {"name": "ucx", "before": {}, "after": {"version": "1.20.1"}}
    assert found["openmpi"]["before"]["schedulers"] == "none"
    assert found["openmpi"]["after"]["target"] == "sapphirerapids"
    assert cli.main(["stack", "diff", "spack:openmpi", "spack:openmpi"]) == 0
    assert capsys.readouterr().out == "spack:openmpi, spack:openmpi: the same packages\n"


@pytest.mark.parametrize(("given", "told"), [
    ("openmpi", "'openmpi' is not a Spack stack"),
    ("spack:lam", "no Spack environment 'lam'"),
    ("absent/spack.lock", "environment 'absent' has no lock"),
    ("bad.lock", "cannot read the lock"),
    ("other.lock", "cannot read the lock"),
])  # fmt: skip
def test_what_is_no_lock_is_one_line(given, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.lock").write_text("not JSON")
    Path("other.lock").write_text('{"roots": 3}')
    with pytest.raises(PlumbError, match=told):
        command._read(given)
