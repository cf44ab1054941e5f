"""Binaries in a registry of container images, and places of binaries that cannot be used."""

import pytest
import spack_site
import yaml

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.spack import buildcache, environments

REGISTRY = "oci://registry.example/group/plumbline"


@pytest.fixture
def root(tmp_path, monkeypatch):
    spack_site.suit_any_machine(monkeypatch.setattr)
    return spack_site.make(tmp_path, monkeypatch)


@pytest.fixture
def pushed(root, monkeypatch, capsys):
    """The registry has the stack, and is given; nothing is installed in Spack's store any more."""
    stacks.install("spack", "openmpi")
    capsys.readouterr()
    assert push() == 0
    monkeypatch.setenv(buildcache.PLACE, REGISTRY)
    (root.parent / "fake" / "installed").unlink()


def push(*more):
    return cli.main(["stack", "push", "spack:openmpi", "--registry", REGISTRY, *more])


def calls(root, first_word):
    lines = (root.parent / "fake" / "calls").read_text().splitlines()
    return [line for line in lines if line.startswith(first_word)]


def mirrors():
    return yaml.safe_load((environments.home() / "config" / "mirrors.yaml").read_text())["mirrors"]


def test_a_stack_is_pushed_unsigned_with_an_index(root, pushed, capsys):
    asked = calls(root, "buildcache")
    assert asked[0].startswith(f"buildcache push --unsigned --only package {REGISTRY} /")
    assert asked[1:] == [f"buildcache update-index {REGISTRY}"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(f" packages in {REGISTRY}, unsigned")
    assert said[1] == f"there: {buildcache.PLACE}={REGISTRY} plumb stack install spack:openmpi"


def test_what_the_registry_has_needs_no_source(root, pushed):
    stacks.install("spack", "openmpi", force=True)
    kernels, _ = environments.read("openmpi").node("plumbline-kernels")
    assert calls(root, "fetch")[-1] == f"fetch /{kernels}"
    assert mirrors()["registry0-binaries"] == {"url": REGISTRY, "signed": False, "binary": True, "source": False}


def test_a_registry_is_not_asked_for_what_is_installed(root, monkeypatch):
    """It need not be reachable to write the manifest again."""
    stacks.install("spack", "openmpi")
    monkeypatch.setenv(buildcache.PLACE, REGISTRY)
    stacks.install("spack", "openmpi", force=True)
    assert calls(root, "buildcache") == []


def test_name_and_password_are_read_by_spack_and_written_nowhere(root, pushed, monkeypatch):
    for name in buildcache.LOGIN:
        monkeypatch.setenv(name, "secret-of-the-registry")
    stacks.install("spack", "openmpi", force=True)
    user, password = buildcache.LOGIN
    assert mirrors()["registry0-binaries"]["access_pair"] == {"id_variable": user, "secret_variable": password}
    written = [file for file in environments.home().rglob("*") if file.is_file()]
    assert not [file for file in written if b"secret-of-the-registry" in file.read_bytes()]


def test_a_registry_that_asks_for_a_login_is_told_with_the_variables(root, pushed):
    said = "==> Error: FetchIndexError: Could not fetch manifest, due to: GET https://x returned 401: Cannot login\n"
    (root.parent / "fake" / "refused").write_text(said)
    with pytest.raises(PlumbError, match=r"the registry refuses the login .*set PLUMB_SPACK_REGISTRY_USER and PLUMB_"):
        stacks.install("spack", "openmpi", force=True)


def test_nothing_in_a_registry_can_be_signed(root, pushed, monkeypatch, capsys):
    assert push("--key", "builder") == 2
    assert "a registry holds no signed binaries" in capsys.readouterr().err
    monkeypatch.setenv(buildcache.VARIABLE, "keys.asc")
    with pytest.raises(PlumbError, match=r"a registry holds no signed binaries .*unset PLUMB_SPACK_KEYS"):
        stacks.install("spack", "openmpi", force=True)


def test_a_registry_without_encryption_is_refused(capsys):
    """Binaries that nobody signed, over a connection that anybody can change."""
    with pytest.raises(SystemExit):
        cli.main(["stack", "push", "spack:openmpi", "--registry", "oci+http://registry.example/x"])
    assert (
        "'oci+http://registry.example/x' is not the address of a registry, such as oci://HOST/NAME"
        in capsys.readouterr().err
    )


def test_a_folder_that_does_not_exist_is_named(root, tmp_path, monkeypatch):
    """Spack would build everything and say nothing."""
    monkeypatch.setenv(buildcache.PLACE, str(tmp_path / "typing-mistake"))
    with pytest.raises(PlumbError, match=r"no such folder of binaries .*typing-mistake"):
        stacks.install("spack", "openmpi")
