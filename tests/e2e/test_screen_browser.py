"""The page of a machine in a real browser: racks, what a node opens, and nothing that a name or a line can run."""

from pathlib import Path

import chromium
import msgspec
import pytest
import reports
from playwright.sync_api import expect

from plumbline.base import paths
from plumbline.extras.nodes import model, screen, screening
from plumbline.extras.nodes.screening import Terms
from plumbline.show.pages import render

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, screening.ScreenStatus]:
    """The page of the example of docs/health.md, in which a node says something hostile."""
    history = model.history(paths.root() / "tests/rates/example.screen.jsonl")
    history = [msgspec.structs.replace(one, line=reports.HOSTILE) if one.state == "doubt" else one for one in history]
    terms = Terms(7, None, 25, history[-1].time)
    found = screening.assess(sorted({one.node for one in history}), history, terms, 0.02)
    file = tmp_path_factory.mktemp("screen") / "screen.html"
    file.write_text(render(screen.document("Screen", found, screen.RACKS, ["a line"])))
    return file, found


def test_every_node_stands_in_its_rack_and_in_the_table(visit, page):
    file, found = page
    tab = visit(file)
    expect(tab.locator("#closing")).to_have_text(found.closing())
    racks = tab.locator("#racks table")
    expect(racks).to_have_count(2)
    cells = [cell for rack in racks.all() for cell in rack.locator("td .opener").all_inner_texts()]
    shown = [screen.MARKS[one.state] + ("" if one.place is None else f"{100 * one.place:.0f}") for one in found.nodes]
    assert cells == shown
    rows = tab.locator("#nodes tbody tr")
    for row, one in zip(rows.all(), found.nodes, strict=True):
        expect(row.locator("th")).to_have_text(one.name)
        expect(row).to_contain_text(one.line)


def test_a_cell_opens_the_course_of_its_node(visit, page):
    file, found = page
    tab = visit(file)
    tab.locator("#racks td .opener").nth(4).click()
    dialog = tab.locator("#details")
    expect(dialog.locator("h2")).to_have_text("r1n5")
    expect(dialog).to_contain_text("found once: it is checked again first")
    expect(dialog.locator("figure")).to_have_count(3)
    dialog.locator("figure summary").first.click()
    expect(dialog.locator("figure").first.locator("tbody tr")).to_have_count(len(found.nodes[4].course))
    tab.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_it_fits_a_phone(visit, page):
    chromium.fits(visit, page[0])
