"""A lab from its tests to its last line, as one types it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import own_code
import pytest

from plumbline.base import paths

pytestmark = pytest.mark.e2e
LAST = "holds here: Each rank has a line with its host, the CPUs planned for it, and those seen: "


class Ran(NamedTuple):
    """How a lab ended, what it printed, and the folder of its files."""

    status: int
    output: str
    folder: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """S6 measured here: the map of ranks of a record."""
    folder = tmp_path_factory.mktemp("lab")
    around = own_code.variables(folder)
    status, output = own_code.plumb(paths.root(), around, "lab", "S6", "--output", str(folder / "s6.html"))
    return Ran(status, output, folder)


def test_it_measures_and_ends_with_what_was_seen(ran: Ran) -> None:
    assert ran.status == 0, ran.output
    assert ran.output.rstrip().splitlines()[-1].startswith(LAST)


def test_the_map_of_the_records_ranks_is_in_it(ran: Ran) -> None:
    lines = ran.output.partition("$ plumb show ")[2].splitlines()
    assert [line.split()[0] for line in lines if line.split()[2:3] == line.split()[3:4] != []][:2] == ["0", "1"]


def test_its_page_has_the_same_words(ran: Ran) -> None:
    page = (ran.folder / "s6.html").read_text(encoding="utf-8")
    assert "On which node and which cores did each rank run?" in page
    assert LAST in page


def test_shown_again_it_measures_nothing(ran: Ran) -> None:
    around = own_code.variables(ran.folder)
    before = sorted((ran.folder / "results").rglob("*.jsonl"))
    status, output = own_code.plumb(paths.root(), around, "lab", "S6", "--recorded")
    assert (status, sorted((ran.folder / "results").rglob("*.jsonl"))) == (0, before)
    assert "campaign" not in output
