"""The page of a comparison in a real browser: what the table of the terminal says, and nothing that a name can run."""

import chromium
import pytest
import reports
from playwright.sync_api import expect

from plumbline.judge import compare
from plumbline.judge.compare import Side
from plumbline.records.model import convert
from plumbline.show import compare as forms
from plumbline.show.compare import closing

pytestmark = chromium.needed
#: how far an element has scrolled when it first does
SCROLLED = """element => {
    window.scrolled = new Promise((done) => {
        element.addEventListener('scroll', () => done(element.scrollLeft), { once: true });
    });
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of three stacks, one of which ran on another kernel, and the comparison."""
    records = [convert(item) for item in reports.campaign()]
    records = [record for record in records if record.is_comparable]
    for record in records:
        if record.stack.name == "mpich":
            record.host["kernel"] = reports.HOSTILE
    comparison = compare.compare(records, [Side(name, (("stack", name),)) for name in reports.STACKS])
    file = tmp_path_factory.mktemp("compare") / "compare.html"
    file.write_text(forms.of(comparison)[".html"]())
    return file, comparison


def test_every_line_stands_in_the_table_with_its_best_marked(visit, page):
    file, comparison = page
    tab = visit(file)
    shown = tab.locator("#figures tbody tr")
    assert shown.count() == len(comparison.lines) > 3
    for row, line in zip(shown.all(), comparison.lines, strict=True):
        expect(row.locator("th")).to_contain_text(line.key.variant)
        cells = row.locator("td.number").all()
        assert len(cells) == len(reports.STACKS)
        best = [place for place, cell in enumerate(cells) if "★" in cell.inner_text()]
        assert best == list(line.best)
        for cell, known, difference in zip(cells, line.cells, line.differences, strict=True):
            expect(cell).to_contain_text(f"{known.launches} launches" if known else "–")
            if difference:
                expect(cell).to_contain_text({"launches": "~", "pairs": "="}[difference.basis])
    assert any(line.best for line in comparison.lines)
    expect(tab.locator("#closing")).to_have_text(closing(comparison))
    expect(tab.locator("#figures li")).to_contain_text(["ratio to the first side", "=: measured in turn"])


def test_what_differs_stands_first_and_is_no_markup(visit, page):
    tab = visit(page[0])
    assert tab.locator("main section").first.get_attribute("id") == "differs"
    expect(tab.locator("#differs tbody tr", has_text="kernel")).to_contain_text("</script >")
    assert tab.evaluate("window.broken") is None


def test_it_follows_the_system_and_fits_a_phone(visit, page):
    chromium.fits(visit, page[0])


def test_a_wide_table_is_reached_and_scrolled_by_the_keyboard(visit, page):
    tab = visit(page[0], width=730)
    wide = tab.locator("#figures .scroll")
    expect(wide).to_have_attribute("tabindex", "0")
    for _ in range(300):
        tab.keyboard.press("Tab")
        if wide.evaluate("element => element === document.activeElement"):
            break
    expect(wide).to_be_focused()
    wide.evaluate(SCROLLED)
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("window.scrolled") > 0


def test_a_phone_shows_the_values_of_each_side(visit, page):
    tab = visit(page[0], width=420)
    cells = tab.locator("#figures tbody tr").first.locator("td.number").all()
    assert len(cells) > 1
    for cell in cells:
        expect(cell).to_be_visible()
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 420
