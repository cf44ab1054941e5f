"""Who made the binaries of a buildcache: GnuPG's signatures, which Spack writes and checks.

``PLUMB_SPACK_KEYS`` names the public keys that are trusted: a file, or a folder of files. With it, every binary of the
folder ``PLUMB_SPACK_BUILDCACHE`` that a lock can take must be signed by one of them. Spack alone would build from
source where a signature is missing or wrong, and say nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from plumbline import files
from plumbline.errors import PlumbError
from plumbline.stacks.spack import settings

VARIABLE = "PLUMB_SPACK_KEYS"
_BEGIN, _END = "-----BEGIN PGP SIGNED MESSAGE-----", "-----BEGIN PGP SIGNATURE-----"


def wanted() -> bool:
    """Whether binaries must be signed."""
    return bool(os.environ.get(VARIABLE))


def keyring() -> Path:
    """GnuPG's folder with the keys that are trusted, and no other key."""
    return settings.home() / "gpg"


def own_keys() -> Path:
    """GnuPG's folder of the user, who signs with a key in it."""
    return Path(os.environ.get("GNUPGHOME") or Path.home() / ".gnupg")


def trust() -> None:
    """Make the keyring hold exactly the keys of ``PLUMB_SPACK_KEYS``; does nothing if that is not set.

    Raises :class:`PlumbError` if there are no such keys, or GnuPG cannot import them.
    """
    if not wanted():
        return
    found = _key_files()
    total = hashlib.sha256(b"\0".join(file.read_bytes() for file in found)).hexdigest()
    mark = keyring() / "keys.sha256"
    if mark.is_file() and mark.read_text(encoding="utf-8").strip() == total:
        return
    shutil.rmtree(keyring(), ignore_errors=True)
    keyring().mkdir(parents=True, mode=0o700)
    # an import looks for an agent, and the path of the keyring may be too long for the name of the agent's socket
    with tempfile.TemporaryDirectory(prefix="plumb-gpg-") as folder:
        done = _gpg(Path(folder), "--import", *map(str, found))
        if done.returncode != 0:
            said = (done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"])[0]
            raise PlumbError(
                f"gpg cannot import the keys: {said[:200]}", str(found[0]), "gpg --armor --export KEY makes one"
            )
        shutil.copy(Path(folder) / "pubring.kbx", keyring())
    files.replace(mark, total + "\n")


def _key_files() -> list[Path]:
    place = Path(os.environ[VARIABLE])
    found = sorted(file for file in place.iterdir() if file.is_file()) if place.is_dir() else [place]
    if not found or not all(file.is_file() for file in found):
        raise PlumbError("no public key there", str(place), f"{VARIABLE} is a file of public keys or a folder of such")
    return found


def content(file: Path, must_be_signed: bool) -> str:
    """The text of a description in a buildcache, without its signature.

    With ``must_be_signed``, raises :class:`PlumbError` unless it is signed by a key in the keyring.
    """
    text = file.read_text(encoding="utf-8")
    if not must_be_signed:
        return text.partition("\n\n")[2].partition(_END)[0] if text.startswith(_BEGIN) else text
    if not text.startswith(_BEGIN):
        cure = f"push it with --key, or unset {VARIABLE} to take unsigned binaries"
        raise PlumbError(f"the binary is not signed: {file.name}", str(file), cure)
    done = _gpg(keyring(), "--decrypt", str(file))
    if done.returncode != 0:
        cure = f"do not use it, or add the public key of who signed it to {VARIABLE}"
        raise PlumbError(f"the signature is not that of a trusted key: {file.name}", str(file), cure)
    return done.stdout.decode()


def _gpg(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("gpg2") or shutil.which("gpg")
    if program is None:
        raise PlumbError("gpg is not installed", VARIABLE, "install GnuPG (Debian: apt-get install gnupg)")
    options = ["--homedir", str(folder), "--batch", "--no-tty", "--quiet", "--no-autostart"]
    command = [program, *options, *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
