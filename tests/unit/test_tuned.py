"""Tuned stacks: what is written for one, that it follows the stack that it was made from, and when it is stale."""

import msgspec
import pytest

from plumbline import cli, files, paths, rfm_settings
from plumbline.errors import PlumbError
from plumbline.mpi.settings import Configuration, Rule, Setting
from plumbline.stacks import manifest, tuned
from plumbline.tune.emit import emit

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
    document = {
        "schema": 1, "name": "one", "provider": "wheel", "mpi": {"family": "openmpi", "version": "5", "abi": "openmpi"},
        "compiler": {"name": "gcc", "version": "12"}, "launcher": {"family": "prrte", "command": str(program)},
        "prefix": str(folder / "prefix"), "environment": {"OPAL_PREFIX": "/x"}, "modules": [],
        "benchmarks": {"pi": manifest.benchmark("kernels", "1", program, "by a test")},
        "loads": {"library": library, "files": {library: files.sha256(folder / "library")}}, "sources": [], **changes,
    }  # fmt: skip
    manifest.path("one").parent.mkdir(parents=True, exist_ok=True)
    manifest.save(document)
    return document


def emitted(document, configuration=CONFIGURATION, **changes):
    where = tuned.fingerprint(document, 2, "compact")
    for name, value in changes.items():
        where = msgspec.structs.replace(where, **{name: value})
    return emit(document, configuration, where, "20260101T000000Z-host-abcdef")


class TestEmit:
    def test_the_stack_has_more_settings_and_nothing_else(self, base):
        folder = emitted(base)
        found = manifest.load("one+tuned")
        rules = str(folder / "collectives.rules")
        assert folder == paths.stacks() / "one+tuned"
        assert found["settings"] == {
            "smsc": "^cma", "coll_tuned_use_dynamic_rules": "1", "coll_tuned_dynamic_rules_filename": rules,
        }  # fmt: skip
        assert found["tuned"]["of"] == "one"
        same = set(base) - {"name", "loads"}
        assert {key: found[key] for key in same} == {key: base[key] for key in same}
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
        assert manifest.load("one+tuned")["settings"] == {"pml": "ob1"}
        assert not (folder / "collectives.rules").exists()

    def test_what_is_not_written(self, base):
        with pytest.raises(PlumbError, match="default is no configuration"):
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
        assert found["settings"]["smsc"] == "^cma"
        assert found["tuned"]["session"] == "20260101T000000Z-host-abcdef"

    def test_those_of_other_numbers_of_nodes_too(self, base, tmp_path):
        assert emitted(base, nodes=2).name == "one+tuned-2n"
        assert manifest.load("one+tuned-2n")["name"] == "one+tuned-2n"
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


class TestStale:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"cpu": "Z80"}, "were found on Z80, this is "),
            ({"kernel": "2.4.0"}, "were found under kernel 2.4.0, this is "),
        ],
    )
    def test_another_host(self, base, change, said, capsys):
        emitted(base, **change)
        (remark,) = tuned.remarks(manifest.load("one+tuned"))
        assert said in remark
        assert cli.main(["stack", "check", "one+tuned"]) == 0
        assert f"one+tuned: {remark}; tune it again" in capsys.readouterr().out

    def test_another_library(self, base, tmp_path):
        emitted(base)
        (tmp_path / "library").write_text("version 6")
        tuned.renew(save(tmp_path))
        (remark,) = tuned.remarks(manifest.load("one+tuned"))
        assert "were found with the MPI library " in remark

    def test_the_same_host_and_other_stacks(self, base):
        emitted(base)
        assert tuned.remarks(manifest.load("one+tuned")) == tuned.remarks(base) == []


def test_stack_show_says_what_it_is(base, capsys):
    emitted(base)
    assert cli.main(["stack", "show", "one+tuned"]) == 0
    out = capsys.readouterr().out
    assert "  setting      smsc=^cma\n" in out
    assert "  tuned        2 ranks, compact, " in out


def test_reframe_takes_its_name(base, tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    emitted(base)
    named = {item["name"]: item.get("extras") for item in rfm_settings.configuration()["environments"]}
    assert named["one_tuned"]["stack"] == "one+tuned"
