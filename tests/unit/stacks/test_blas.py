"""The choice of the BLAS: the fastest of those that can be had, measured by turns, and what is left of the others."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.stacks import blas, fetch, stream


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An x86-64 machine with a registry whose wheels unpack to nothing but a file each; what was downloaded."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))
    monkeypatch.setattr(blas.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(stream.Compiler, "native", lambda self: "znver9")
    loaded: list[str] = []

    def download(name: str, folder: Path, *_: Any, **__: Any) -> dict[str, Path]:
        loaded.append(name)
        folder.mkdir()
        return {name: folder / f"{name}.whl"}

    def unpack(_: Path, ending: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(ending)

    monkeypatch.setattr(fetch, "download", download)
    monkeypatch.setattr(fetch, "unpack", unpack)
    return loaded


def rates(monkeypatch: pytest.MonkeyPatch, **given: list[float]) -> list[str]:
    """Let each BLAS reach the given rates in turn; the order in which they were started."""
    order: list[str] = []

    def rate(one: blas.Candidate, _: Path) -> float:
        order.append(one.name)
        if not given[one.name]:
            raise PlumbError(f"{one.name} cannot multiply", "stack blas")
        return given[one.name].pop(0)

    monkeypatch.setattr(blas, "_rate", rate)
    return order


@pytest.mark.parametrize(
    ("openblas", "mkl", "chosen"),
    [(72.0, 81.0, "mkl"), (54.0, 48.0, "openblas"), (98.1, 100.0, "openblas"), (97.9, 100.0, "mkl")],
)
def test_the_fastest_is_kept_and_the_first_where_they_are_alike(started, monkeypatch, openblas, mkl, chosen):
    order = rates(monkeypatch, openblas=[10.0, openblas, 20.0], mkl=[mkl, 30.0, 5.0])
    folder = blas.prefix()
    assert order == 3 * ["openblas", "mkl"], "by turns: what disturbs one disturbs the other"
    assert blas.facts() == {"blas": chosen, "blas_GFlop_per_s": {"openblas": openblas, "mkl": mkl}}
    libraries = sorted(file.name for file in (folder / "lib").iterdir())
    assert ("libscipy_openblas.so" in libraries, "libmkl_core.so.3" in libraries) == (chosen != "mkl", chosen == "mkl")
    assert {file.name for file in folder.iterdir()} <= {"lib", "LICENSE.txt", "third-party-programs.txt", blas.MARK}
    assert str(folder / "lib" / libraries[-1]) in blas.options()


def test_it_is_chosen_once_for_a_processor(started, monkeypatch):
    rates(monkeypatch, openblas=6 * [1.0], mkl=6 * [2.0])
    blas.prefix()
    blas.prefix()
    assert started == ["blas", "mkl"]
    monkeypatch.setattr(stream.Compiler, "native", lambda self: "znver10")
    blas.prefix()
    assert started == 2 * ["blas", "mkl"]


def test_a_choice_that_fails_leaves_the_one_that_stacks_load(started, monkeypatch):
    rates(monkeypatch, openblas=3 * [1.0], mkl=3 * [2.0])
    folder = blas.prefix()
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(stream.Compiler, "native", lambda self: "znver10")
    rates(monkeypatch, openblas=[], mkl=[])
    with pytest.raises(PlumbError, match="no BLAS can multiply here"):
        blas.prefix()
    assert sorted(folder.rglob("*")) == before


def test_one_that_cannot_be_had_is_left_out_with_its_reason(started, monkeypatch, capsys):
    rates(monkeypatch, openblas=3 * [1.0])
    usual = fetch.download

    def without(name: str, *rest: Any, **more: Any) -> dict[str, Path]:
        if name == "mkl":
            raise PlumbError("pip cannot get the packages of mkl.txt", "stack blas")
        return usual(name, *rest, **more)

    monkeypatch.setattr(fetch, "download", without)
    folder = blas.prefix()
    assert blas.facts()["blas_left_out"] == {"mkl": "pip cannot get the packages of mkl.txt (stack blas)"}
    assert "blas: mkl is left out: pip cannot get" in capsys.readouterr().out
    assert not (folder / "mkl").exists()


def test_one_that_cannot_multiply_is_not_chosen(started, monkeypatch):
    rates(monkeypatch, openblas=3 * [1.0], mkl=[])
    blas.prefix()
    assert blas.facts()["blas"] == "openblas"
    rates(monkeypatch, openblas=[], mkl=[])
    (blas.prefix() / blas.MARK).unlink()
    with pytest.raises(PlumbError, match="no BLAS can multiply here: openblas cannot multiply"):
        blas.prefix()


def test_another_machine_has_openblas_alone(started, monkeypatch):
    monkeypatch.setattr(blas.platform, "machine", lambda: "aarch64")
    rates(monkeypatch, openblas=3 * [1.0])
    blas.prefix()
    assert started == ["blas"]
    assert [file.name for file in blas.lock_files()] == ["blas.txt"]


def test_two_processes_choose_one_after_the_other(started, monkeypatch):
    rates(monkeypatch, openblas=6 * [1.0], mkl=6 * [2.0])
    waits = threading.Event()
    monkeypatch.setattr(stacks, "print", lambda *_, **__: waits.set(), raising=False)
    other = threading.Thread(target=blas.prefix)
    usual = fetch.download

    def download(*given: Any, **more: Any) -> dict[str, Path]:
        if not started:
            other.start()
            while other.is_alive() and not waits.is_set():
                other.join(0.01)
        return usual(*given, **more)

    monkeypatch.setattr(fetch, "download", download)
    blas.prefix()
    other.join()
    assert started == ["blas", "mkl"]


def test_every_lock_pins_by_hash_and_the_choice_made_here_is_whole():
    for file in blas.lock_files():
        assert "--hash=sha256:" in file.read_text()
    mark = blas.paths.stacks() / "blas" / blas.MARK
    if mark.exists():
        found = json.loads(mark.read_text())
        assert found["blas_GFlop_per_s"][found["blas"]] >= blas.AS_GOOD * max(found["blas_GFlop_per_s"].values())
