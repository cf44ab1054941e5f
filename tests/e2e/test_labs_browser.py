"""The page of a lab, and the sheet for a class, as a browser shows them."""

from pathlib import Path

import chromium
import pytest
from msgspec import structs
from playwright.sync_api import expect
from samples import barrier

from plumbline.extras.labs import command, evidence, model
from plumbline.records.model import Record
from plumbline.show.pages import render

pytestmark = [chromium.needed, pytest.mark.e2e]


def records() -> list[Record]:
    """Two kinds of barrier between two threads, and one kind in teams of two and four."""
    made = []
    for kind, cycles in (("spin", 267.0), ("pthread", 4796.0)):
        made.append(barrier(cycles, f"{kind}_cycles", placement="pair:l3"))
    for threads in (2, 4):
        team = barrier(100.0 * threads, "spin_cycles", placement="compact", threads=threads)
        team.variant = structs.replace(team.variant, test="barrier_threads")
        made.append(team)
    for record in made:
        (figure,) = record.figures
        figure.unit, figure.samples = "cycles", [figure.value * (1 + 0.001 * number) for number in range(-3, 4)]
        record.launches = [record.launches[0]] * 7
    return made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the lab R7 as ``lab.html`` and ``class.html``."""
    folder, lab = tmp_path_factory.mktemp("lab"), model.named("R7")
    found = evidence.findings(lab, records())
    done = command.Done(lab, evidence.filled(lab, records()), [], found, evidence.closing(lab, found, ""))
    (folder / "lab.html").write_text(render(command.document(done)), encoding="utf-8")
    (folder / "class.html").write_text(render(command.handout(done)), encoding="utf-8")
    return folder


def test_it_begins_with_what_was_seen_and_shows_published_beside_measured(visit, pages):
    tab = visit(pages / "lab.html")
    expect(tab.locator("#closing")).to_contain_text("holds here")
    first = tab.locator("#table-0 table").first
    expect(first).to_contain_text("49237")
    expect(first).to_contain_text("here / rrze-nehalem:i7-920")
    chromium.draw_all(tab)
    assert tab.locator("figure").count() >= 1


@pytest.mark.parametrize("name", ["lab", "class"])
def test_it_fits_a_phone(visit, pages, name):
    chromium.fits(visit, pages / f"{name}.html")


def test_an_output_keeps_its_lines_and_its_path_out_of_the_headings(visit, tmp_path):
    output = evidence.Output("plumb profile -- /a/path/to/stacks/mpich/kernels/bin/rank_ring", f"{'x' * 200}\n y", [])
    done = command.Done(model.named("S5"), [], [output], [], "holds here")
    (tmp_path / "lab.html").write_text(render(command.document(done)), encoding="utf-8")
    tab = visit(tmp_path / "lab.html", width=420)
    assert tab.evaluate("document.documentElement.scrollWidth") == 420
    assert "/" not in "".join(tab.locator("h1, h2, h3").all_inner_texts())
    assert tab.locator("pre").evaluate("element => getComputedStyle(element).whiteSpace") == "pre"


def test_points_of_one_number_are_no_curve(visit, tmp_path):
    """The teams of R7 are published of four threads alone."""
    lab = model.named("R7")
    done = command.Done(lab, evidence.filled(lab, []), [], [], "")
    (tmp_path / "lab.html").write_text(render(command.document(done)), encoding="utf-8")
    assert visit(tmp_path / "lab.html").locator("figure").count() == 0


def test_the_solution_is_on_a_sheet_of_its_own(visit, pages):
    tab = visit(pages / "class.html")
    tab.emulate_media(media="print")
    assert tab.locator("#solution").evaluate("element => getComputedStyle(element).breakBefore") == "page"
    filled, empty = (tab.locator(f"#{name} table").first.inner_text() for name in ("table-0", "empty-0"))
    assert ("49237" in filled, "49237" in empty) == (True, True)
    assert ("here / " in filled, "here / " in empty) == (True, False)
