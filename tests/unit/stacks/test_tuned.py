"""Tuned stacks: what is written for one, that it follows the stack that it was made from, and when it is stale."""

import errno
import json
import os

import msgspec
import pytest
import stack_manifest
from msgspec.structs import replace

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.tune.command import emit
from plumbline.measure.reframe import settings
from plumbline.mpi.settings import Configuration, Rule, Setting
from plumbline.stacks import manifest, tuned

CONFIGURATION = Configuration((Setting("smsc", "^cma"),), (Rule("bcast", "6", 4096),))


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The manifest of a stack of Open MPI, whose library and programs are small files."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    for name in ("library", "program"):
        (tmp_path / name).write_text(f"#!/bin/sh\n# {name}\n")
        (tmp_path / name).chmod(0o755)
    return save(tmp_path)


def save(folder, **changes):
    """Writes the manifest of the stack ``one`` for the files as they are now."""
    library, program = str(folder / "library"), folder / "program"
    manifest.path("one").parent.mkdir(parents=True, exist_ok=True)
    made = stack_manifest.made(
        "one", mpi={"family": "openmpi", "version": "5", "abi": "openmpi"}, prefix=str(folder / "prefix"),
        launcher={"family": "prrte", "command": str(program)}, environment={"OPAL_PREFIX": "/x"},
        benchmarks={"pi": msgspec.to_builtins(manifest.benchmark("kernels", "1", program, "by a test"))},
        loads={"library": library, "files": {library: files.sha256(folder / "library")}}, **changes,
    )  # fmt: skip
    manifest.save(made)
    return manifest.load("one")


def emitted(document, configuration=CONFIGURATION, **changes):
    where = tuned.fingerprint(document, 2, "compact")
    for name, value in changes.items():
        where = replace(where, **{name: value})
    return emit(document, configuration, where, "20260101T000000Z-host-abcdef")


def full_disk(file, text):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))


class TestEmit:
    def test_the_stack_has_more_settings_and_nothing_else(self, base):
        folder = emitted(base)
        found = manifest.load("one+tuned")
        rules = str(folder / "collectives.rules")
        assert folder == paths.stacks() / "one+tuned"
        assert found.settings == {
            "smsc": "^cma", "coll_tuned_use_dynamic_rules": "1", "coll_tuned_dynamic_rules_filename": rules,
        }  # fmt: skip
        assert found.tuned.of == "one"
        changed = {name: getattr(base, name) for name in ("name", "loads", "settings", "tuned")}
        assert replace(found, **changed) == base
        assert manifest.environment(found, {})["OMPI_MCA_smsc"] == "^cma"

    def test_the_native_files(self, base):
        folder = emitted(base)
        assert "export OMPI_MCA_smsc='^cma'\n" in (folder / "environment.sh").read_text()
        assert "smsc = ^cma\n" in (folder / "mca-params.conf").read_text()
        assert "7 # bcast" in (folder / "collectives.rules").read_text()

    def test_changed_rules_are_another_stack(self, base):
        rules = emitted(base) / "collectives.rules"
        assert manifest.problems(manifest.load("one+tuned")) == []
        rules.write_text(rules.read_text().replace("4096", "8192"))
        assert "was changed (SHA-256 differs)" in manifest.problems(manifest.load("one+tuned"))[0]

    def test_an_earlier_one_is_replaced(self, base):
        emitted(base)
        folder = emitted(base, Configuration((Setting("pml", "ob1"),)))
        assert manifest.load("one+tuned").settings == {"pml": "ob1"}
        assert not (folder / "collectives.rules").exists()

    def test_a_full_disk_leaves_the_earlier_one(self, base, monkeypatch):
        emitted(base)
        before = {file.name: file.read_bytes() for file in (paths.stacks() / "one+tuned").iterdir()}
        monkeypatch.setattr(manifest.files, "replace", full_disk)
        with pytest.raises(PlumbError, match=r"cannot write stack one\+tuned: No space left on device"):
            emitted(base, Configuration((Setting("pml", "ob1"),)))
        assert {file.name: file.read_bytes() for file in (paths.stacks() / "one+tuned").iterdir()} == before
        left = {entry.name for entry in paths.stacks().iterdir()} - {".one+tuned.lock"}
        assert sorted(left) == ["one", "one+tuned"]

    def test_nothing_names_the_folder_that_it_was_built_in(self, base):
        folder = emitted(base)
        for file in folder.iterdir():
            assert ".new" not in file.read_text(), file

    def test_what_is_not_written(self, base):
        with pytest.raises(PlumbError, match="default is not a configuration"):
            emitted(base, Configuration())
        with pytest.raises(PlumbError, match="has settings already"):
            emitted(manifest.load(emitted(base).name))
        foreign = paths.stacks() / "one+tuned" / ".plumbline"
        foreign.unlink()
        with pytest.raises(PlumbError, match="not made by Plumbline"):
            emitted(base)


class TestRenew:
    def test_it_gets_the_programs_of_its_stack(self, base, tmp_path):
        emitted(base)
        (tmp_path / "program").write_text("#!/bin/sh\n# built again\n")
        assert "SHA-256 differs" in manifest.problems(manifest.load("one+tuned"))[0]
        tuned.renew(save(tmp_path))
        found = manifest.load("one+tuned")
        assert manifest.problems(found) == []
        assert found.settings["smsc"] == "^cma"
        assert found.tuned.session == "20260101T000000Z-host-abcdef"

    def test_those_of_other_numbers_of_nodes_too(self, base, tmp_path):
        assert emitted(base, nodes=2).name == "one+tuned-2n"
        assert manifest.load("one+tuned-2n").name == "one+tuned-2n"
        (tmp_path / "program").write_text("#!/bin/sh\n# built again\n")
        tuned.renew(save(tmp_path))
        assert manifest.problems(manifest.load("one+tuned-2n")) == []

    def test_a_damaged_one_is_named_and_its_stack_goes_on(self, base, tmp_path, capsys):
        emitted(base)
        manifest.path("one+tuned").write_text("{")
        tuned.renew(save(tmp_path))
        assert "plumb stack remove one+tuned" in capsys.readouterr().err
        assert manifest.path("one+tuned").read_text() == "{"

    def test_without_a_tuned_stack_nothing_is_made(self, base):
        tuned.renew(base)
        assert manifest.names() == ["one"]


class TestMalformed:
    """A manifest that a person changed by hand: one line that names the member."""

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"tuned": {}}, "tuned: Object missing required field `of`"),
            ({"tuned": 7}, "tuned: Expected `object | null`, got `int`"),
            ({"configuration": {"settings": 3}}, "tuned.configuration.settings: Expected `array`, got `int`"),
            ({"configuration": {"rules": [{"collective": "bcast"}]}},
             "tuned.configuration.rules[0]: Object missing required field `algorithm`"),
            ({"fingerprint": {"library": "", "cpu": "", "kernel": "", "ranks": 2, "placement": "", "nodes": "x"}},
             "tuned.fingerprint.nodes: Expected `int`, got `str`"),
            ({"settings": None}, "a tuned stack needs `settings` and `loads`"),
        ],
    )  # fmt: skip
    def test_it_is_one_line(self, base, change, said, capsys):
        emitted(base)
        file = manifest.path("one+tuned")
        document = json.loads(file.read_text())
        for name, value in change.items():
            if name == "settings":
                del document[name]
            elif name == "tuned":
                document[name] = value
            else:
                document["tuned"][name] = value
        file.write_text(json.dumps(document))
        assert cli.main(["stack", "check", "one+tuned"]) != 0
        err = capsys.readouterr().err
        assert said in err
        assert "error in Plumbline" not in err
        tuned.renew(base)
        assert said in capsys.readouterr().err


class TestStale:
    @pytest.mark.parametrize(("change", "said"), [
        ({"cpu": "Z80"}, "were found on Z80, this is "),
        ({"kernel": "2.4.0"}, "were found under kernel 2.4.0, this is "),
    ])  # fmt: skip
    def test_another_host(self, base, change, said, output_of):
        emitted(base, **change)
        (remark,) = tuned.remarks(manifest.load("one+tuned"))
        assert said in remark
        out = output_of(0, "stack", "show", "one+tuned")
        assert "  setting      smsc=^cma\n" in out
        assert "  tuned        2 ranks, compact, " in out
        assert f"one+tuned: {remark}; tune it again" in output_of(0, "stack", "check", "one+tuned")

    def test_another_library(self, base, tmp_path):
        emitted(base)
        (tmp_path / "library").write_text("version 6")
        tuned.renew(save(tmp_path))
        (remark,) = tuned.remarks(manifest.load("one+tuned"))
        assert "were found with the MPI library " in remark

    def test_the_same_host_and_other_stacks(self, base):
        emitted(base)
        assert tuned.remarks(manifest.load("one+tuned")) == tuned.remarks(base) == []


def test_reframe_takes_its_name(base, tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    emitted(base)
    named = {item["name"]: item.get("extras") for item in settings.configuration()["environments"]}
    assert named["one_tuned"]["plumb"]["stack"] == "one+tuned"
