"""The page of an acceptance test, as a browser shows it."""

from pathlib import Path

import acceptance
import chromium
import pytest
from playwright.sync_api import expect

from plumbline.extras.accept import forms, model, verdict
from plumbline.show.pages import render

pytestmark = [chromium.needed, pytest.mark.e2e]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the records in docs/acceptance.md."""
    file = tmp_path_factory.mktemp("accept") / "page.html"
    contract = model.load(acceptance.FOLDER / "contract.yaml")
    judged = verdict.judge(contract, acceptance.made())
    file.write_text(render(forms.page(contract, judged, "0" * 64)), encoding="utf-8")
    return file


def test_it_begins_with_the_verdict_and_names_who_misses_the_limit(visit, page):
    tab = visit(page)
    expect(tab.locator("h1")).to_have_text("Acceptance of Example-1: ▼ fail")
    expect(tab.locator("#closing")).to_contain_text("accept: fail: 3 clauses: 1 pass, 1 unknown, 1 fail")
    rows = tab.locator("#clause-0 tbody tr")
    expect(rows.first).to_contain_text("n3")
    assert rows.count() == 8


def test_it_fits_a_phone(visit, page):
    chromium.fits(visit, page)
