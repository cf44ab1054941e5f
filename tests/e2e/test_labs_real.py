"""Labs from their tests to their last lines, as one types them: those of the tutorial."""

from pathlib import Path
from typing import NamedTuple

import own_code
import pytest
import tutorial

from plumbline.base import paths
from plumbline.extras.labs import evidence, model

pytestmark = pytest.mark.e2e
LABS = model.every()
#: labs whose commands measure, of which `make long` runs all
FEW = ("S5",)
LAST = "holds here: Each rank has a line with its host, the CPUs planned for it, and those seen: "


class Ran(NamedTuple):
    """How a lab ended, what it printed, and the folder of its files."""

    status: int
    output: str
    folder: Path


def words(step: str) -> list[str]:
    """The words of a step of the tutorial after ``plumb``."""
    program, *others = tutorial.STEPS[step].split()
    assert program == "plumb"
    return others


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """S6 measured here: the map of ranks of a record."""
    folder = tmp_path_factory.mktemp("lab")
    around = own_code.variables(folder)
    status, output = own_code.plumb(paths.root(), around, *words("proof"), "--output", str(folder / "s6.html"))
    return Ran(status, output, folder)


def test_it_measures_and_ends_with_what_was_seen(ran):
    assert ran.status == 0, ran.output
    assert ran.output.rstrip().splitlines()[-1].startswith(LAST)


def test_the_map_of_the_records_ranks_is_in_it(ran):
    lines = ran.output.partition("$ plumb show ")[2].splitlines()
    assert [line.split()[0] for line in lines if line.split()[2:3] == line.split()[3:4] != []][:2] == ["0", "1"]


def test_its_page_has_the_same_words(ran):
    page = (ran.folder / "s6.html").read_text(encoding="utf-8")
    assert "On which node and which cores did each rank run?" in page
    assert LAST in page


@pytest.mark.parametrize("step", ["where", pytest.param("cost", marks=pytest.mark.long)])
def test_the_other_first_labs_of_the_tutorial_end_with_a_line_that_says_what_was_seen(ran, step):
    output = own_code.succeeds(paths.root(), own_code.variables(ran.folder), *words(step))
    assert (
        output.rstrip()
        .splitlines()[-1]
        .startswith(("holds", "does not hold", "not decided here", "true without measuring"))
    )


def test_shown_again_it_measures_nothing(ran):
    around = own_code.variables(ran.folder)
    before = sorted((ran.folder / "results").rglob("*.jsonl"))
    status, output = own_code.plumb(paths.root(), around, "lab", "S6", "--recorded")
    assert (status, sorted((ran.folder / "results").rglob("*.jsonl"))) == (0, before)
    assert "campaign" not in output


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in FEW else pytest.mark.long)
    for name, lab in LABS.items()
    if any(step.measures for step in lab.prints)
])  # fmt: skip
def test_what_the_documents_say_is_in_the_output_of_commands_that_measure(name, tmp_path):
    """Counts are facts of any machine. The record of another lab is that of its own run, above."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
        outputs = [evidence.run_printed(one) for one in LABS[name].prints if model.RECORD not in one.command]
    assert [finding for output in outputs for finding in output.findings if finding.state != evidence.HOLDS] == []
