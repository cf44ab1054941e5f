"""The gate's page in a real browser, from a file: every series, every pair, and nothing that a name can run."""

import chromium
import numpy as np
import pytest
from chromium import SERIES, draw_all
from gate_pairs import pairs_of
from playwright.sync_api import expect

from plumbline.gate import page
from plumbline.judge import decide
from plumbline.show.pages import render
from plumbline.statistics.paired import PairedRule

pytestmark = chromium.needed
HOSTILE = "</script ><script>window.broken=1</script><img src=x onerror=window.broken=2>"


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A page with one series of each verdict, and its pairs by name."""
    draw = np.random.default_rng(3)

    def pairs(name, ratio, noise, count=90, **options):
        sides = [10 * factor * np.exp(draw.normal(0, noise, count)) for factor in (1, ratio)]
        return pairs_of(name, *(values.tolist() for values in sides), "lower", **options)

    found = [
        pairs("fine", 1.0, 0.01, again=[(0, 10.0, 11.0), (7, 10.0, 9.0)]),
        pairs(HOSTILE, 1.1, 0.01),
        pairs("noisy", 1.03, 0.15, rule=PairedRule(0.02, 0.08)),
        pairs("short", 1.0, 0.01, 5),
    ]
    file = tmp_path_factory.mktemp("gate") / "gate.html"
    facts = [("baseline", "old"), ("repeat", "plumb gate --baseline old")]
    file.write_text(render(page.document(decide.decide(found, PairedRule()), PairedRule(), facts)))
    return file, {item.name: item for item in found}


def test_every_series_stands_in_the_table_the_worst_first(visit, gate):
    tab = visit(gate[0])
    rows = tab.locator("#series tbody tr")
    names = [row.locator("th").inner_text() for row in rows.all()]
    assert [name[:5] for name in names] == ["short", HOSTILE[:5], "noisy", "fine"]
    for row, state in zip(rows.all(), ("INVALID", "FAIL", "INCONCLUSIVE", "PASS"), strict=True):
        expect(row).to_contain_text(state)
    expect(rows.nth(0)).to_contain_text("5 pairs: 13 are needed")
    expect(tab.get_by_label("What was compared")).to_contain_text("old")
    expect(tab.locator("#circumstances")).to_contain_text("plumb gate --baseline old")
    assert tab.evaluate("window.broken") is None


def test_a_gate_without_facts_has_a_head_without_words_of_programs(visit, tmp_path):
    file = tmp_path / "gate.html"
    found = pairs_of("fine", [10.0, 10.5] * 20, [10.0, 10.5] * 20, "lower")
    file.write_text(render(page.document(decide.decide([found], PairedRule()), PairedRule(), [])))
    head = visit(file).locator("#head")
    expect(head).to_contain_text("gate: PASS")
    expect(head).not_to_contain_text("false")


def test_every_pair_is_drawn_and_stands_in_a_table(visit, gate):
    file, pairs = gate
    tab = visit(file)
    draw_all(tab)
    figures = tab.locator("#pairs figure")
    assert figures.count() == 3
    for figure in figures.all():
        name = figure.locator("figcaption strong").inner_text()
        series = figure.locator(".drawing").evaluate(f"element => {SERIES}[0].data.map((point) => point.value[1])")
        item = pairs[name]
        again = zip(item.baseline.superseded, item.candidate.superseded, strict=True)
        columns = [
            *zip(item.baseline.values, item.candidate.values, strict=True),
            *((first, second) for (_, first), (_, second) in again),
        ]
        assert series == pytest.approx([second / first for first, second in columns])
        figure.locator("summary").click()
        expect(figure.locator("tbody tr")).to_have_count(len(series))
    fine = figures.filter(has_text="fine")
    assert fine.locator("tbody tr", has_text="measured again").count() == 2
    expect(figures.filter(has_text="noisy")).to_contain_text("2.0 % tolerated, 8.0 % must be seen")


def test_it_follows_the_system_and_fits_a_phone(visit, gate):
    chromium.fits(visit, gate[0])


def test_a_name_leads_to_its_picture(visit, gate):
    tab = visit(gate[0])
    tab.locator("#series a", has_text="noisy").click()
    expect(tab.locator("#pairs figure", has_text="noisy")).to_be_in_viewport()
