"""Archives that are damaged, changed or hostile: one line, nothing outside the folder, and the good one stays."""

import gzip
import io
import json
import tarfile

import fuzz
import pytest

from plumbline.base import sealed
from plumbline.base.errors import PlumbError
from plumbline.commands.cli import main
from plumbline.stacks import archive

GOOD = {"schema": 2, "commit": None, **archive.machine(), "stacks": [], "locks": {}, "files": []}


def packed(folder, index, name="all.tar"):
    """An archive with this index and one more file; its list of files is right."""
    content = folder / "content"
    (content / "wheels").mkdir(parents=True, exist_ok=True)
    (content / "wheels" / "a.whl").write_bytes(b"a wheel")
    text = index if isinstance(index, bytes) else json.dumps(index).encode()
    (content / archive.INDEX).write_bytes(text)
    sealed.write(content, folder / name)
    (content / sealed.SUMS).unlink()
    return folder / name


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder where a good archive is unpacked."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    (tmp_path / "stacks").mkdir()
    archive.unpack(packed(tmp_path, GOOD, "good.tar"))
    return tmp_path


def untouched(place):
    """What the good archive held is there, and nothing else but a lock."""
    assert (place / "stacks" / "archive" / "wheels" / "a.whl").read_bytes() == b"a wheel"
    assert json.loads((place / "stacks" / "archive" / archive.INDEX).read_text()) == GOOD
    assert {file.name for file in (place / "stacks").iterdir()} == {"archive", ".archive.lock"}


def test_a_damaged_archive_is_one_error_and_the_good_one_stays(place):
    file = place / "bad.tar"
    sound = (place / "good.tar").read_bytes()

    def read(text):
        file.write_bytes(text)
        if text != sound:
            archive.unpack(file)

    fuzz.attack(read, fuzz.spoiled_texts("archives", [sound]))
    assert (place / "stacks" / "archive" / "wheels" / "a.whl").read_bytes() == b"a wheel"
    assert {entry.name for entry in place.iterdir()} == {"stacks", "content", "good.tar", "bad.tar"}


def test_an_index_with_odd_members_is_one_error_or_used(place):
    def read(index):
        archive.unpack(packed(place, index))
        archive.pip_options(place / "good.tar")

    fuzz.attack(read, fuzz.spoiled_documents("indices", [GOOD]))


@pytest.mark.parametrize("key", [key for key in GOOD if key != "stacks"])
def test_an_index_that_lacks_a_key_is_one_error(place, key):
    with pytest.raises(PlumbError):
        archive.unpack(packed(place, {name: value for name, value in GOOD.items() if name != key}))
    untouched(place)


@pytest.mark.parametrize("text", [b"", b"[" * 100_000, b"null", b"[]", b'{"schema": NaN}', b"\xff"])
def test_an_index_that_is_none_is_one_error(place, text):
    with pytest.raises(PlumbError):
        archive.unpack(packed(place, text))
    untouched(place)


def test_a_compressed_archive_is_not_unpacked(place):
    bomb = place / "bomb.tar"
    with gzip.open(bomb, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        member = tarfile.TarInfo("wheels/zeros")
        member.size = 64 << 20
        tar.addfile(member, io.BytesIO(bytes(member.size)))
    assert bomb.stat().st_size < 1 << 20
    with pytest.raises(PlumbError, match="the archive is damaged"):
        archive.unpack(bomb)
    untouched(place)


def test_a_file_of_holes_is_not_unpacked(place):
    bomb = place / "bomb.tar"
    with tarfile.open(bomb, "w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("wheels/zeros")
        holes = {"map": "0,0", "size": str(1 << 50), "name": "wheels/zeros"}
        member.pax_headers = {f"GNU.sparse.{key}": value for key, value in holes.items()}
        tar.addfile(member, io.BytesIO())
    with pytest.raises(PlumbError, match=r"tampered with|damaged"):
        archive.unpack(bomb)
    untouched(place)


def test_a_member_that_claims_more_than_there_is_is_refused(place):
    bomb = place / "bomb.tar"
    member = tarfile.TarInfo("wheels/zeros")
    member.size = 1 << 50
    bomb.write_bytes(member.tobuf() + bytes(2048))
    with pytest.raises(PlumbError, match=r"damaged|tampered"):
        archive.unpack(bomb)
    untouched(place)


@pytest.mark.parametrize("name", ["a\0b", "/etc/cron.d/x", "../x", ".", "wheels/a.whl/x", "x" * 300, "\udcff"])
def test_a_member_of_an_odd_name_is_refused(place, name):
    bad = place / "bad.tar"
    bad.write_bytes((place / "good.tar").read_bytes())
    with tarfile.open(bad, "a") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(PlumbError):
        archive.unpack(bad)
    untouched(place)


@pytest.mark.parametrize("digest", ["", " ", "0", "g" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n"])
def test_a_digest_that_is_none_is_an_error(place, digest, capsys):
    assert main(["stack", "install", "--from", str(place / "good.tar"), "--sha256", digest]) == 2
    assert "is not a SHA-256 (--sha256)" in capsys.readouterr().err
    assert archive.main(["lock", str(place / "good.tar"), digest]) == 2
    untouched(place)


def test_a_digest_without_an_archive_is_an_error(place, capsys):
    assert main(["stack", "install", "openmpi", "--sha256", "0" * 64]) == 2
    assert "--sha256 goes with --from" in capsys.readouterr().err
