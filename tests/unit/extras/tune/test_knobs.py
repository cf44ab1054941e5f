"""``plumb knobs``: what a program of the stack lists, and which of it is curated."""

import json
import os

import pytest
import stack_manifest

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.tune import knobs
from plumbline.stacks import manifest

MPICH = [
    {"name": "MPIR_CVAR_CH4_CMA_ENABLE", "type": "int", "value": "1", "running": True, "about": "single copy"},
    {"name": "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM", "type": "int", "value": "2", "running": True,
     "about": "Variable to select\nauto - Internal\nnb - Force nb\nring    - Force ring\n"},
    {"name": "MPIR_CVAR_NEW", "type": "text", "value": "", "running": True, "about": "a new one"},
]  # fmt: skip
INTEL = [
    {
        "name": "MPIR_CVAR_USE_ALLREDUCE", "type": "text", "value": "", "running": True,
        "about": "presets range: 0-32 @Alias:# I_MPI_ADJUST_ALLREDUCE @Default:# -1",
    },
]  # fmt: skip


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """Makes the manifest of a stack whose program lists settings, and prints the variables that it was given."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))

    def make(family, told, script=None, **changes):
        program = tmp_path / "kernels/libexec/list_settings"
        program.parent.mkdir(parents=True)
        listed = json.dumps({"library": "Library 5.0,\n built today", "settings": told})
        program.write_text(script or f"#!/bin/sh\nenv > {tmp_path}/environment\ncat <<'END'\n{listed}\nEND\n")
        program.chmod(0o755)
        kernel = stack_manifest.LEAST["benchmarks"]["pi"] | {"file": f"{tmp_path}/kernels/bin/pi"}
        (tmp_path / "one").mkdir()
        made = stack_manifest.made("one", family, benchmarks={"pi": kernel}, **changes)
        manifest.save(made)
        return made

    return make


class TestInventory:
    def test_words_stand_for_numbers(self, stack):
        known = knobs.inventory(stack("mpich", MPICH)).settings["MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM"]
        assert (known.default, known.now, known.allowed) == ("ring", "ring", "auto, nb, ring")
        assert [known.number(value) for value in ("ring", "7", "pairwise")] == ["2", "7", None]

    def test_curated_names_that_the_library_lacks_are_dropped(self, stack):
        found = knobs.inventory(stack("mpich", MPICH))
        assert [knob.name for knob in found.knobs] == [item["name"] for item in MPICH[:2]]
        assert "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD" in found.lacking
        assert found.library == "Library 5.0"

    def test_intel_mpi_names_them_by_alias_and_ranges(self, stack):
        found = knobs.inventory(stack("intelmpi", INTEL, settings={"I_MPI_ADJUST_ALLREDUCE": "2"}))
        known = found.settings["I_MPI_ADJUST_ALLREDUCE"]
        assert (known.allowed, known.default, known.now) == ("0-32", "", "2")

    def test_words_of_numbers(self, stack):
        item = {"name": "x", "type": "int", "value": "6", "running": True, "about": "", "words": {"0": "a", "6": "b"}}
        known = knobs.inventory(stack("openmpi", [item])).settings["x"]
        assert (known.default, known.allowed) == ("6", "0 a, 6 b")

    def test_settings_of_the_user_are_not_those_of_the_stack(self, stack, tmp_path, monkeypatch):
        monkeypatch.setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0")
        knobs.inventory(stack("mpich", MPICH, settings={"MPIR_CVAR_NEW": "x"}))
        given = (tmp_path / "environment").read_text().splitlines()
        assert "MPIR_CVAR_NEW=x" in given
        assert not [line for line in given if line.startswith("MPIR_CVAR_CH4")]
        assert f"HOME={os.environ['HOME']}" not in given

    @pytest.mark.parametrize(("script", "what"), [
        ("#!/bin/sh\necho no transport >&2; exit 3\n", "ended with 3: no transport"),
        ("#!/bin/sh\necho hello\n", "printed no list of settings"),
        ("#!/nowhere\n", "cannot be asked"),
    ])  # fmt: skip
    def test_a_library_that_cannot_be_asked(self, stack, script, what):
        with pytest.raises(PlumbError, match=what):
            knobs.inventory(stack("mpich", [], script))

    def test_a_program_that_was_compiled_for_another_processor(self, stack):
        made = stack("mpich", MPICH)
        made.benchmarks["pi"].facts["instructions"] = "new512"
        with pytest.raises(PlumbError, match=r"list_settings of stack one was compiled .* this node lacks new512"):
            knobs.inventory(made)

    def test_a_stack_of_an_earlier_version_has_no_such_program(self, stack, tmp_path):
        document = stack("mpich", MPICH)
        (tmp_path / "kernels/libexec/list_settings").unlink()
        with pytest.raises(PlumbError, match="has no program list_settings"):
            knobs.inventory(document)


class TestCommand:
    def test_what_eager_buffers_take(self, stack, capsys):
        told = [
            {"name": name, "type": "unsigned", "value": value, "running": True, "about": "boxes"}
            for name, value in (("btl_sm_fbox_size", "4096"), ("btl_sm_fbox_max", "32"))
        ]
        stack("openmpi", told)
        assert cli.main(["knobs", "one", "fbox"]) == 0
        size, most = capsys.readouterr().out.split("\n\n")
        assert "32 at most (btl_sm_fbox_max): 128 KiB a rank, 4.1 MiB for 33 ranks" in size
        assert "memory" not in most
