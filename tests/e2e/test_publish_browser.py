"""Published pages in a real browser, from a folder: every kind, its links, no request beyond the folder."""

import shutil

import chromium
import pytest
import reports
from chromium import SERIES, draw_all, sideways
from playwright.sync_api import expect

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.records import notes

pytestmark = chromium.needed
PAGES = {
    "all": "index.html",
    "side by side": "compare.html",
    "system": "systems/local/index.html",
    "machine": "systems/local/machine.html",
    "test": "systems/local/tests/stream_threads.html",
    "campaign": f"systems/local/campaigns/{reports.CAMPAIGN}.html",
}
NOTE = "</script><img src=x onerror=window.broken=3>new kernel"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("publish")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_RESULTS", str(folder / "results"))
        reports.write(folder / "results")
        reports.write_other(folder / "results", "other")
        notes.add("local", NOTE, notes.moment("2025-12-13T06:00"))
        shutil.copytree(paths.root() / "site-configs" / "gpc", folder / "sites" / "local")
        described = folder / "sites" / "local" / "site.yaml"
        described.write_text(described.read_text().replace("name: gpc", "name: local"))
        patch.setenv("PLUMB_SITES", str(folder / "sites"))
        assert cli.main(["publish", str(folder / "pages")]) == 0
    return folder / "pages"


@pytest.mark.parametrize(("width", "scheme"), [
    (1280, "light"),
    pytest.param(360, "dark", marks=pytest.mark.long),
    pytest.param(1280, "dark", marks=pytest.mark.long),
    pytest.param(360, "light", marks=pytest.mark.long),
])  # fmt: skip
@pytest.mark.parametrize("name", PAGES)
def test_each_page_draws_itself_at_every_width(visit, root, name, width, scheme):
    tab = visit(root / PAGES[name], width=width, root=root, color_scheme=scheme)
    expect(tab.locator("h1")).to_be_visible()
    assert tab.evaluate("document.documentElement.dataset.theme") == scheme
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    draw_all(tab)
    assert tab.evaluate("window.broken") is None
    assert tab.locator("img").count() == 0


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_all_values_without_scrolling_sideways(visit, root, name):
    assert sideways(visit(root / PAGES[name], width=420, root=root)) == []


def test_links_lead_from_all_systems_to_a_record(visit, root):
    tab = visit(root / "index.html", root=root)
    tab.locator("#systems a", has_text="local").click()
    expect(tab.locator("#changes tbody tr")).to_have_count(1)
    expect(tab.locator("#changes")).to_contain_text("−7.4 % worse")
    expect(tab.locator("#changes")).to_contain_text(NOTE)
    tab.locator("#changes a").click()
    expect(tab.locator("h1")).to_have_text("stream_threads")
    draw_all(tab)
    marks = tab.locator("#history .drawing").evaluate(f"element => {SERIES}[0].markLine.data.map((mark) => mark.xAxis)")
    assert marks == [25, 25]
    tab.locator("#history .drawing").evaluate(
        """element => echarts.getInstanceByDom(element).trigger('click', {
            data: echarts.getInstanceByDom(element).getOption().series[0].data[13] })"""
    )
    tab.wait_for_url("**/campaigns/old-13.html#record-*")
    expect(tab.locator("#details")).to_be_visible()
    tab.keyboard.press("Escape")
    tab.locator(".trail a", has_text="local").click()
    expect(tab.locator("h1")).to_have_text("local")


def test_systems_are_side_by_side(visit, root):
    tab = visit(root / "index.html", root=root)
    tab.locator("#systems a", has_text="Systems side by side").click()
    expect(tab.locator("h1")).to_have_text("Systems side by side")
    expect(tab.locator("#differs tbody tr").first).to_contain_text(f"{reports.CAMPAIGN}, 2026-01-05")
    expect(tab.locator("#figures thead")).to_contain_text("other")
    assert tab.locator("#figures tbody tr").count() > 1
    tab.locator(".trail a").click()
    expect(tab.locator("h1")).to_have_text("Plumbline")


def test_the_machine_is_drawn_and_names_no_path_of_the_publisher(visit, root):
    tab = visit(root / PAGES["machine"], root=root)
    drawing = tab.locator("#topology pre")
    expect(drawing).to_contain_text("local:default: 2 sockets")
    assert str(root.parent) not in drawing.inner_text()
    expect(tab.locator("#hosts")).to_contain_text("performance")


def test_a_long_list_shows_all_on_demand_with_the_keyboard(visit, root):
    tab = visit(root / PAGES["system"], root=root)
    rows = tab.locator("#campaigns tbody tr")
    expect(rows).to_have_count(40)
    tab.get_by_role("button", name="Show all 41").focus()
    tab.keyboard.press("Enter")
    expect(rows).to_have_count(41)


def test_the_policy_holds_against_code_in_the_page_and_the_network(browser, root):
    """The guard, broken on purpose: a script in the page and a request to elsewhere are stopped."""
    seen = chromium.stopped(browser, root / "index.html", "script")
    assert seen == [["connect-src", "script-src-elem", "script-src-elem"], None]
