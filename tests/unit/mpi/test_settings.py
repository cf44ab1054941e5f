"""Settings of MPI libraries: curated knobs, what they need, and how a configuration is written down for a library."""

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline import mpi
from plumbline.base.errors import PlumbError
from plumbline.mpi.settings import Configuration, Knob, Rule, Setting, complete

FAMILIES = [mpi.TABLE[name] for name in ("openmpi", "mpich", "intelmpi")]
CELL, PACK = "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE", "MPIR_CVAR_CH4_PACK_BUFFER_SIZE"


def configured(family: str, folder, *settings: tuple[str, str], rules: tuple[Rule, ...] = ()) -> dict[str, str]:
    configuration = Configuration(tuple(Setting(*pair) for pair in settings), rules)
    return {
        mpi.TABLE[family].setting_variable(setting.name): setting.value
        for setting in mpi.TABLE[family].settings_of(configuration, folder)
    }


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
class TestKnobs:
    def test_there_are_a_few_and_each_is_named_once(self, family):
        names = [knob.name for knob in family.knobs]
        assert 8 <= len(names) == len(set(names)) <= 20

    def test_each_has_a_variable_of_the_library_and_something_to_try(self, family):
        for knob in family.knobs:
            assert knob.values, knob.name
            assert family.setting_variable(knob.name).startswith(family.variables), knob.name

    def test_the_default_sets_nothing(self, family, tmp_path):
        assert family.settings_of(Configuration(), tmp_path) == ()
        assert list(tmp_path.iterdir()) == []


class TestNeeds:
    def test_a_cell_needs_a_pack_buffer_of_its_size(self, tmp_path):
        assert configured("mpich", tmp_path, (CELL, "65536")) == {CELL: "65536", PACK: "65536"}

    def test_what_is_asked_for_stays_so(self, tmp_path):
        assert configured("mpich", tmp_path, (PACK, "16384"), (CELL, "65536"))[PACK] == "16384"

    def test_the_largest_need_counts(self):
        knobs = [Knob(name, ("1",), "start", "intra", at_least=("room",)) for name in "ab"]
        assert Setting("room", "7") in complete([Setting("a", "7"), Setting("b", "3")], knobs)

    def test_an_algorithm_of_open_mpi_needs_its_switch(self, tmp_path):
        found = configured("openmpi", tmp_path, ("coll_tuned_allreduce_algorithm", "3"))
        assert found["OMPI_MCA_coll_tuned_use_dynamic_rules"] == "1"

    def test_of_two_values_the_later_one_counts(self, tmp_path):
        assert configured("openmpi", tmp_path, ("pml", "ucx"), ("pml", "ob1")) == {"OMPI_MCA_pml": "ob1"}


class TestRulesOfOpenMpi:
    def test_the_file(self, tmp_path):
        rules = (Rule("bcast", "6", 4096), Rule("allreduce", "3", 64, 128, ranks=2))
        found = configured("openmpi", tmp_path, rules=rules)
        assert found["OMPI_MCA_coll_tuned_use_dynamic_rules"] == "1"
        file = Path(found["OMPI_MCA_coll_tuned_dynamic_rules_filename"])
        assert file.read_text(encoding="utf-8").splitlines() == [
            "rule-file-version-2", "2",
            "2 # allreduce", "3",
            "0", "1", "0 0 0 0",
            "2", "3", "0 0 0 0", "64 3 0 0", "128 0 0 0",
            "3", "1", "0 0 0 0",
            "7 # bcast", "1",
            "0", "2", "0 0 0 0", "4096 6 0 0",
        ]  # fmt: skip

    def test_sizes_over_all_ranks(self, tmp_path):
        rules = (Rule("alltoall", "2", 64, 128, ranks=4), Rule("bcast", "1", 64, 128, ranks=4))
        configured("openmpi", tmp_path, rules=rules)
        lines = (tmp_path / "collectives.rules").read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line.endswith(" 2 0 0")] == ["256 2 0 0"]
        assert [line for line in lines if line.endswith(" 1 0 0")] == ["64 1 0 0"]
        assert "512 0 0 0" in lines

    def test_ranges_that_touch(self, tmp_path):
        configured("openmpi", tmp_path, rules=(Rule("bcast", "1", 0, 8), Rule("bcast", "2", 8, 16)))
        text = (tmp_path / "collectives.rules").read_text(encoding="utf-8")
        assert text.endswith("3\n0 1 0 0\n8 2 0 0\n16 0 0 0\n")

    @pytest.mark.parametrize(("rules", "what"), [
        ((Rule("ibcast", "1", 0),), "no rules for ibcast"),
        ((Rule("bcast", "binomial", 0),), "'binomial' is not an algorithm of bcast"),
    ])  # fmt: skip
    def test_what_the_file_cannot_say(self, tmp_path, rules, what):
        with pytest.raises(PlumbError, match=what):
            configured("openmpi", tmp_path, rules=rules)


@pytest.mark.parametrize("family", ["openmpi", "mpich", "intelmpi"])
class TestOverlappingRules:
    @pytest.mark.parametrize("first", [Rule("bcast", "1", 0), Rule("bcast", "1", 0, 9), Rule("bcast", "1", 8, 16)])
    def test_two_for_one_size_are_refused(self, family, first, tmp_path):
        with pytest.raises(PlumbError, match="two rules for bcast of 8 bytes"):
            configured(family, tmp_path, rules=(Rule("bcast", "2", 8), first))

    def test_those_for_other_ranks_are_others(self, family, tmp_path):
        name = "mpir" if family == "mpich" else "1"
        assert configured(family, tmp_path, rules=(Rule("bcast", name, 0, ranks=2), Rule("bcast", name, 0, ranks=3)))


def release_gather(collective: str) -> dict[str, dict[str, str]]:
    return {f"algorithm=MPIDI_POSIX_mpi_{collective}_release_gather": {}}


class TestRulesOfMpich:
    def tree(self, folder, *rules: Rule) -> dict[str, Any]:
        (setting,) = configured("mpich", folder, rules=rules).items()
        assert setting[0] == "MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE"
        return json.loads(Path(setting[1]).read_text(encoding="utf-8"))

    def test_what_no_rule_names_is_the_choice_of_the_library(self, tmp_path):
        tree = self.tree(tmp_path, Rule("reduce", "mpir", 0))
        node = {"comm_type=intra": {"is_multi_threaded=no": release_gather("bcast")}}
        assert tree["collective=bcast"] == node
        adding = tree["collective=allreduce"]["comm_type=intra"]["is_multi_threaded=no"]["is_commutative=yes"]
        assert adding == release_gather("allreduce")
        assert set(tree) == {f"collective={name}" for name in ("barrier", "bcast", "reduce", "allreduce")}

    def test_consecutive_numbers_of_ranks_keep_their_rules(self, tmp_path):
        tree = self.tree(tmp_path, Rule("bcast", "mpir", 0, None, 4), Rule("bcast", "mpir", 64, None, 5))
        choice = tree["collective=bcast"]["comm_type=intra"]["is_multi_threaded=no"]
        other, its = release_gather("bcast"), {"comm_type=inter": release_gather("bcast")}
        five = {"avg_msg_size<64": other, "avg_msg_size=any": its}
        assert list(choice.items()) == [
            ("comm_size<=3", other), ("comm_size<=4", {"avg_msg_size=any": its}), ("comm_size<=5", five),
            ("comm_size=any", other),
        ]  # fmt: skip

    def test_one_algorithm_outside_the_tree_is_for_all_ranks(self, tmp_path):
        rules = (Rule("alltoall", "brucks", 0, ranks=2), Rule("alltoall", "pairwise", 0, ranks=4))
        with pytest.raises(PlumbError, match="one algorithm of alltoall for all numbers of ranks"):
            configured("mpich", tmp_path, rules=rules)

    def test_ranges_of_sizes_for_a_number_of_ranks(self, tmp_path):
        tree = self.tree(tmp_path, Rule("bcast", "mpir", 4096, 8192, 2), Rule("bcast", "mpir", 65536, None, 2))
        choice = tree["collective=bcast"]["comm_type=intra"]["is_multi_threaded=no"]
        other, its = release_gather("bcast"), {"comm_type=inter": release_gather("bcast")}
        sizes = {
            "avg_msg_size<4096": other,
            "avg_msg_size<8192": its,
            "avg_msg_size<65536": other,
            "avg_msg_size=any": its,
        }
        assert choice == {"comm_size<=1": other, "comm_size<=2": sizes, "comm_size=any": other}
        assert list(choice) == ["comm_size<=1", "comm_size<=2", "comm_size=any"], "the first that holds counts"
        assert list(choice["comm_size<=2"]) == list(sizes)

    @pytest.mark.parametrize(("rule", "what"), [
        (Rule("alltoall", "ring", 64, 128), "for all sizes only"),
        (Rule("allreduce", "ring", 64), "'ring' is not an algorithm of allreduce on a node"),
    ])  # fmt: skip
    def test_what_it_cannot_be_given(self, tmp_path, rule, what):
        with pytest.raises(PlumbError, match=what):
            configured("mpich", tmp_path, rules=(rule,))


class TestRulesOfTheOthers:
    def test_intel_mpi_takes_ranges_inclusive(self, tmp_path):
        rules = (Rule("allreduce", "2", 64, 128, ranks=2), Rule("allreduce", "5", 4096))
        assert configured("intelmpi", tmp_path, rules=rules) == {
            "I_MPI_ADJUST_ALLREDUCE": "2:64-127@2-2;5:4096-2147483647"
        }

    def test_mpich_takes_an_algorithm_for_all_sizes(self, tmp_path):
        rules = (Rule("alltoall", "pairwise", 0),)
        assert configured("mpich", tmp_path, rules=rules) == {"MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": "pairwise"}

    def test_mvapich_takes_none(self, tmp_path):
        with pytest.raises(PlumbError, match="cannot be given to mvapich"):
            configured("mvapich", tmp_path, rules=(Rule("allreduce", "ring", 0),))
