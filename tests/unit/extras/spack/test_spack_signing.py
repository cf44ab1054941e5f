"""Buildcaches that others install from: pushed by a command, signed, and the keys that are trusted."""

import re
import shutil
import subprocess

import pytest
import spack_site

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.spack import bootstrap, buildcache, environments, runner

pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed: apt-get install gnupg")


@pytest.fixture
def root(tmp_path, monkeypatch):
    spack_site.suit_any_machine(monkeypatch.setattr)
    return spack_site.make(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def gnupg(tmp_path_factory):
    """GnuPG's folder with two secret keys; the public ones are in files there."""
    home = tmp_path_factory.mktemp("g")  # short: gpg-agent's socket lies there
    home.chmod(0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
    for name in ("builder", "somebody"):
        subprocess.run([*gpg, "--quick-generate-key", name, "ed25519", "sign", "never"], check=True)
        subprocess.run([*gpg, "--output", str(home / f"{name}.asc"), "--armor", "--export", name], check=True)
    yield home
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)


@pytest.fixture
def key(gnupg, monkeypatch):
    """A call gives the file with the public key of this name; the user has the secret one."""
    monkeypatch.setenv("GNUPGHOME", str(gnupg))
    return lambda name: gnupg / f"{name}.asc"


@pytest.fixture
def cache(root, tmp_path):
    stacks.install("spack", "openmpi")
    return tmp_path / "cache"


def push(cache, *more):
    return cli.main(["stack", "push", "spack:openmpi", "--to", str(cache), *more])


def install_from(cache, monkeypatch, keys=None):
    """Install again, with nothing but the buildcache given."""
    monkeypatch.setenv("PLUMB_SPACK_BUILDCACHE", str(cache))
    if keys:
        monkeypatch.setenv(buildcache.VARIABLE, str(keys))
    stacks.install("spack", "openmpi", force=True)


def mirror():
    return (environments.home() / "config" / "mirrors.yaml").read_text()


def test_what_was_pushed_and_signed_is_taken(cache, key, monkeypatch, capsys):
    spack_site.start_processes(monkeypatch)
    public = key("builder")
    assert push(cache, "--key", "builder") == 0
    said = capsys.readouterr().out
    assert f"in {cache}, signed by builder" in said
    assert f"PLUMB_SPACK_BUILDCACHE={cache} PLUMB_SPACK_KEYS=FILE plumb stack install spack:openmpi" in said
    install_from(cache, monkeypatch, public)
    assert "signed: true" in mirror()
    # the keyring that Spack is given has the public key, and no secret one
    assert (runner.keyring() / "pubring.kbx").exists()
    assert list(runner.keyring().glob("private-keys-v1.d/*")) == []


def test_the_keyring_may_lie_in_a_folder_with_a_long_path(cache, key, monkeypatch):
    """Longer than the path of a socket can be, such as that of an agent that GnuPG starts."""
    public = key("builder")
    assert push(cache, "--key", "builder") == 0
    monkeypatch.setenv("PLUMB_SPACK_HOME", str(cache.parent / ("l" * 100) / "home"))
    install_from(cache, monkeypatch, public)
    assert len(str(runner.keyring())) > 108
    assert "signed: true" in mirror()


def test_without_keys_signed_and_unsigned_binaries_are_taken(cache, key, monkeypatch, capsys):
    assert push(cache) == 0
    assert ", unsigned\n" in capsys.readouterr().out
    install_from(cache, monkeypatch)
    assert push(cache, "--key", "builder") == 0
    install_from(cache, monkeypatch)
    assert "signed: false" in mirror()


def test_the_keyring_follows_the_keys_in_both_directions(cache, key, monkeypatch, tmp_path):
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    shutil.copy(key("builder"), trusted)
    monkeypatch.setenv(buildcache.VARIABLE, str(trusted))

    def users():
        buildcache.trust()
        command = [
            "gpg", "--homedir", str(runner.keyring()), "--batch", "--no-autostart", "--list-keys", "--with-colons",
        ]  # fmt: skip
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return [line.split(":")[9] for line in lines if line.startswith("uid")]

    assert users() == ["builder"]
    shutil.copy(key("somebody"), trusted)
    assert sorted(users()) == ["builder", "somebody"]
    (trusted / "builder.asc").unlink()
    assert users() == ["somebody"]


def test_a_binary_that_spack_refuses_is_named(root, cache, key, monkeypatch, capsys):
    """Unsigned, signed by another key, or changed: Spack builds the package from its source."""
    push(cache)
    state = root.parent / "fake"
    (state / "installed").unlink()
    (state / "refused").write_text("osu-micro-benchmarks")
    install_from(cache, monkeypatch, key("builder"))
    said = capsys.readouterr().out
    assert re.search(r"Spack refused these binaries and built from source: osu-micro-benchmarks-[\d.]+\n", said)


@pytest.mark.parametrize(("make", "complaint"), [
    (lambda place: None, "no public key there"),
    (lambda place: place.mkdir(), "no public key there"),
    (lambda place: place.write_text("no key\n"), "gpg cannot import the keys: "),
])  # fmt: skip
def test_keys_that_are_none_are_one_clear_line(root, tmp_path, monkeypatch, make, complaint):
    make(tmp_path / "keys")
    monkeypatch.setenv(buildcache.VARIABLE, str(tmp_path / "keys"))
    with pytest.raises(PlumbError, match=complaint):
        bootstrap.prepare()


def test_without_gpg_keys_are_an_error(root, tmp_path, monkeypatch):
    (tmp_path / "key.asc").write_text("x")
    monkeypatch.setenv(buildcache.VARIABLE, str(tmp_path / "key.asc"))
    monkeypatch.setattr(buildcache.shutil, "which", lambda name: None)
    with pytest.raises(PlumbError, match="gpg is not installed"):
        buildcache.trust()


def test_only_an_installed_stack_of_the_present_lock_is_pushed(root, tmp_path, capsys, refused):
    assert push(tmp_path / "cache") == 2
    assert "stack spack-openmpi is not installed, or not of its present lock" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()
    assert "'openmpi' is not a Spack stack" in refused(2, "stack", "push", "openmpi", "--to", str(tmp_path / "cache"))


def test_an_archive_needs_no_signature(root, key, monkeypatch):
    """Its list guards its binaries; keys are for folders of others."""
    (root / "elsewhere").mkdir()
    monkeypatch.setenv(buildcache.PLACE, str(root / "elsewhere"))
    monkeypatch.setenv(buildcache.VARIABLE, str(key("builder")))
    monkeypatch.setattr(buildcache, "airgap", lambda: root / "unpacked")
    signed = {name: entry["signed"] for name, entry in buildcache.mirrors().items()}
    assert signed == {"given-binaries": True, "airgap-binaries": False}


def test_a_folder_that_does_not_exist_is_named(root, tmp_path, monkeypatch):
    """Spack would build everything and say nothing."""
    monkeypatch.setenv(buildcache.PLACE, str(tmp_path / "typing-mistake"))
    with pytest.raises(PlumbError, match=r"no such folder of binaries .*typing-mistake"):
        stacks.install("spack", "openmpi")
