"""The sealed archive: the same verdict again from its records, and each way of changing it."""

import json
import shutil
import tarfile
from pathlib import Path

import acceptance
import fuzz
import pytest

from plumbline.base import files, sealed
from plumbline.commands import cli
from plumbline.extras.accept import forms
from plumbline.records import store
from plumbline.records.model import seal


def enter(folder, monkeypatch):
    """Work in ``folder``, with its own results."""
    for name in ("results", "sites", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(folder / name))
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the contract, the records of the page, and their archive ``a.tar``."""
    folder = tmp_path_factory.mktemp("written")
    acceptance.write(folder)
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        assert cli.main(["accept", "contract.yaml", "--recorded", "--archive", "a.tar"]) == 1
    return folder


@pytest.fixture
def place(written, tmp_path, monkeypatch):
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    enter(tmp_path, monkeypatch)
    return tmp_path


def changed(source, name, change):
    """The archive with a member changed, and the list made again."""
    folder = source.with_name("unpacked")
    with tarfile.open(source) as tar:
        tar.extractall(folder, filter="data")
    file = folder / name
    file.write_text(change(file.read_text()))
    (folder / sealed.SUMS).unlink()
    sealed.write(folder, source.with_name("changed.tar"))
    return source.with_name("changed.tar")


def test_it_holds_all_and_is_the_same_each_time(place, capsys):
    with tarfile.open("a.tar") as tar:
        names = tar.getnames()
        said = json.load(tar.extractfile("verdict.json") or pytest.fail("no verdict"))
    assert names == ["SHA256SUMS", "contract.yaml", "nodes.txt", "page.html", "records.jsonl", "verdict.json"]
    assert [one["verdict"] for one in said["clauses"]] == ["unknown", "pass", "fail"]
    digest = files.sha256(Path("a.tar"))
    cli.main(["accept", "contract.yaml", "--recorded", "--archive", "b.tar"])
    assert f"b.tar: SHA-256 {digest}" in capsys.readouterr().out
    assert files.sha256(Path("b.tar")) == digest


def test_its_verdict_is_worked_out_again_anywhere(place, monkeypatch, capsys, output_of, refused):
    for name in ("results", "sites", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(place / "elsewhere"))
    digest = files.sha256(Path("a.tar"))
    capsys.readouterr()
    out = output_of(1, "accept", "--verify", "a.tar", "--sha256", digest)
    assert "accept: fail: 3 clauses: 1 pass, 1 unknown, 1 fail" in out
    assert out.endswith(f"a.tar: the verdict is that of its 9 records; SHA-256 {digest}\n")
    assert "the archive's SHA-256 is" in refused(3, "accept", "--verify", "a.tar", "--sha256", "0" * 64)


def first_sample(text):
    """The first record with a better launch."""
    line, rest = text.split("\n", 1)
    document = json.loads(line)
    document["launches"][0]["measurements"][0]["value"] *= 2
    return json.dumps(document, separators=(",", ":")) + "\n" + rest


def resealed(text):
    """Records of n3 with better launches and figures, and a new seal: only the verdict tells it."""
    lines = []
    for line in text.splitlines():
        document = json.loads(line)
        document.pop("seal")
        if document["nodes"] == ["n3"]:
            for launch in document["launches"]:
                launch["measurements"][0]["value"] = 190_000.0
            document["figures"][0] |= {"samples": [190_000.0] * 8, "value": 190_000.0}
        lines.append(seal(json.dumps(document, separators=(",", ":"))))
    return "\n".join(lines) + "\n"


CHANGES = {
    "a figure": ("records.jsonl", first_sample, "changed since it was measured"),
    "figures and seals": ("records.jsonl", resealed, "its records do not give its verdict: clauses is"),
    "a record is gone": ("records.jsonl", lambda text: text.split("\n", 1)[1], "its records do not give its verdict"),
    "the limit": ("contract.yaml", lambda text: text.replace("180", "170"), "its records do not give its verdict"),
    "the verdict": ("verdict.json", lambda text: text.replace('"fail"', '"pass"'),
                    "do not give its verdict: verdict is"),
    "no verdict": ("verdict.json", lambda text: "[]", "its records do not give its verdict"),
    "no JSON": ("verdict.json", lambda text: "{", "its verdict cannot be read"),
    "the page": ("page.html", lambda text: text.replace("broadcast", "barrier"), "its page is not that of its records"),
    "no contract": ("contract.yaml", lambda text: "", "the contract is not a mapping"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_told_although_the_list_was_made_again(what, place, refused):
    name, change, said = CHANGES[what]
    file = changed(place / "a.tar", name, change)
    assert said in refused(3, "accept", "--verify", str(file))


@pytest.mark.parametrize("name", ["records.jsonl", "nodes.txt", "verdict.json", "contract.yaml"])
def test_whatever_a_member_holds_is_one_error_or_the_same_verdict(name, place):
    with tarfile.open("a.tar") as tar:
        tar.extractall("unpacked", filter="data")
    file = Path("unpacked") / name
    sound = file.read_bytes()

    def read(text):
        (Path("unpacked") / sealed.SUMS).unlink(missing_ok=True)
        file.write_bytes(text)
        sealed.write(Path("unpacked"), Path("b.tar"))
        forms.read(Path("b.tar"))

    fuzz.attack(read, fuzz.spoiled_texts(f"archive {name}", [sound]))


def delivered(place, rate):
    """The words of a comparison with the offer, where each node has that bandwidth."""
    values = [acceptance.triad(order, rate + order) for order in range(8)]
    records = [acceptance.record(number, acceptance.BANDWIDTH, [f"n{number}"], values) for number in range(8)]
    (place / "delivery" / "cluster").mkdir(parents=True)
    store.write(place / "delivery" / "cluster" / "s.jsonl", records)
    return ["accept", "contract.yaml", "--recorded", "--offered", "a.tar", "--results", str(place / "delivery")]


def test_an_offer_stands_beside_what_was_delivered(place, capsys, output_of, refused):
    words = delivered(place, 93_000.0)
    capsys.readouterr()
    rows = output_of(1, *words).splitlines()
    assert rows[0].split() == ["clause", "promise", "offered", "delivered", "ratio", "offer", "delivery"]
    assert rows[2].split()[6:] == ["185.9", "(usual)", "93.00", "(usual)", "0.500", "unknown", "fail"]
    Path("contract.yaml").write_text(Path("contract.yaml").read_text().replace("180", "90"))
    assert "the offer was measured for another contract" in refused(3, *words)
