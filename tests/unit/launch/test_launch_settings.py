"""Whether the settings that a launch asked for are those that the measured processes had."""

import msgspec
import pytest
import samples
import stack_manifest
from witness_helper import compile_c, cpus, only, rank_plan, run
from witnesses import of_documents

from plumbline import mpi
from plumbline.base.errors import PlumbError
from plumbline.launch import environment
from plumbline.launch.prepare import settings_of

OPEN_MPI, MPICH, INTEL = (mpi.TABLE[name] for name in ("openmpi", "mpich", "intelmpi"))
WORDS = "Variable to select an algorithm\nauto - Internal selection\nring   - Force ring\n  k_tree - Force tree\n"

compare = of_documents(environment.compare_settings)


def test_only_mpi_programs_take_settings():
    """Those of a tuned stack are for its MPI programs; those of the variant itself are refused elsewhere."""
    stack = stack_manifest.made(settings={"a": "1", "b": "1"})
    stack.benchmarks["stream"] = msgspec.structs.replace(stack.benchmarks["pi"], suite="stream")
    own = {"stack": "made", "settings": {"b": "2"}}
    assert settings_of(samples.asked(**own, benchmark="pi"), stack) == {"a": "1", "b": "2"}
    assert settings_of(samples.asked(**own | {"settings": {}}, benchmark="stream"), stack) == {}
    with pytest.raises(PlumbError, match="a program without MPI takes no setting of an MPI library: b"):
        settings_of(samples.asked(**own, benchmark="stream"), stack)


def rank(number=0, **values):
    """The witness of a rank whose library has ``values``: a value, or (value, word)."""
    pairs = {name: value if isinstance(value, tuple) else (value, "") for name, value in values.items()}
    known = [{"name": name, "value": value, "word": word, "about": WORDS} for name, (value, word) in pairs.items()]
    return {"rank": number, "settings": known}


def reasons(family, asked, *witnesses, lines=()):
    return compare(family, asked, list(witnesses), lines)[1]


@pytest.mark.parametrize(("family", "asked", "has"), [
    (OPEN_MPI, "64", "64"),
    (OPEN_MPI, "064", "64"),
    (OPEN_MPI, "true", "1"),
    (OPEN_MPI, "No", "0"),
    (OPEN_MPI, "rabenseifner", ("6", "rabenseifner")),
    (OPEN_MPI, "^a", "^a"),
    (MPICH, "k_tree", "2"),  # its words stand in the description
])  # fmt: skip
def test_settings_that_are_the_same(family, asked, has):
    assert reasons(family, {"x": asked}, rank(x=has)) == []


@pytest.mark.parametrize(("family", "asked", "has", "said"), [
    (OPEN_MPI, "64", "32", "32"),
    (OPEN_MPI, "true", "0", "0"),
    (OPEN_MPI, "ring", ("6", "rabenseifner"), "6"),
    (OPEN_MPI, "cma", "", "nothing"),
    (MPICH, "k_tree", "1", "1"),
    (MPICH, "k_tree", "7", "7"),
])  # fmt: skip
def test_settings_that_are_not(family, asked, has, said):
    assert reasons(family, {"x": asked}, rank(x=has)) == [f"setting x={asked} was not taken: rank 0 has {said}"]


def test_a_name_that_the_library_does_not_know():
    found = reasons(OPEN_MPI, {"btl_sm_eager_limt": "64"}, rank(), rank(1))
    assert found == ["setting btl_sm_eager_limt=64 was not taken: openmpi has no btl_sm_eager_limt"]


def test_every_rank_counts_and_has_to_tell():
    seen, found = compare(OPEN_MPI, {"x": "1"}, [rank(x="1"), rank(1, x="2")], [])
    assert found == ["setting x=1 was not taken: rank 1 has 2"]
    assert seen.seen == {"x": "2"}
    found = reasons(OPEN_MPI, {"x": "1"}, rank(x="1"), {"rank": 1})
    assert found == ["rank 1 has no settings of its MPI library: it ended without MPI_Finalize"]


ADJUSTED = {"I_MPI_ADJUST_BCAST": "2:64-127"}


@pytest.mark.parametrize(("line", "found"), [
    ("[0] MPI startup(): I_MPI_ADJUST_BCAST=2:64-127", ""),
    ("[0] MPI startup(): I_MPI_ADJUST_BCAST=2", "setting I_MPI_ADJUST_BCAST=2:64-127 was not taken: rank 0 has 2"),
    ("I_MPI_ADJUST_BCAST=2:64-127", "I_MPI_ADJUST_BCAST"),  # which the program may print
])  # fmt: skip
def test_texts_of_intel_mpi_are_proven_by_what_it_tells_when_it_starts(line, found):
    told = reasons(INTEL, ADJUSTED, rank(I_MPI_ADJUST_BCAST=""), lines=[line])
    assert len(told) == bool(found)
    assert found in "".join(told)


def test_intel_mpi_is_made_to_tell():
    assert environment.settings_variables(INTEL, ADJUSTED) == {
        "I_MPI_DEBUG": "5",
        "I_MPI_ADJUST_BCAST": "2:64-127",
        "PLUMB_WITNESS_SETTINGS": "I_MPI_ADJUST_BCAST",
    }


def test_more_than_the_witness_has_room_for():
    with pytest.raises(PlumbError, match="65 settings are more"):
        environment.settings_variables(OPEN_MPI, {f"a{number}": "1" for number in range(65)})


class TestWitness:
    @pytest.fixture
    def seen(self, tmp_path, monkeypatch):
        """What the witness of a program whose library has four has of the settings with these names."""
        fake = compile_c(tmp_path, "mpi_with_settings.c", "-shared", "-fPIC", name="libmpi.so")
        flags = [str(fake), f"-Wl,-rpath,{tmp_path}"]
        program = compile_c(tmp_path, "int MPI_Finalize(void); int main(void) { return MPI_Finalize(); }", *flags)

        def ask(names):
            monkeypatch.setenv("PLUMB_WITNESS_SETTINGS", names)
            assert run(tmp_path / "witness", rank_plan([cpus(1)]), [program]) == (0, "")
            return only(tmp_path / "witness").get("settings")

        return ask

    def test_numbers_switches_and_texts(self, seen):
        assert [(item["name"], item["value"], item.get("word")) for item in seen("limit,switch,text,seconds")] == [
            ("limit", "5000000000", None), ("switch", "1", "on"), ("text", 'a "word"', None), ("seconds", "0.5", None),
        ]  # fmt: skip

    def test_names_of_the_environment_are_found_whole(self, seen):
        assert [item["name"] for item in seen("I_TEXT,I_TEXT_LONG,I_TEXT_LONGER,limi")] == ["I_TEXT_LONG"]

    def test_nothing_is_read_unasked(self, seen):
        assert seen("") is None
